// ReplayCaches: keys and values for a replay's launches, computed from tokens by the engine that runs them.
//
// A cache a session, which holds what the last launch left. What a session lacks is taken from another's cache that
// begins alike (a fork: pages are shared, as they were when the record was made), and the rest is computed. When no
// page is free, the caches that were not used for longest are dropped; what was in them is computed again when it is
// wanted.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/result.h"
#include "runtime/engine.h"

namespace troupe {

class ReplayCaches {
 public:
  explicit ReplayCaches(Engine& engine) : engine_(engine) {}

  // The next launch begins: caches that are prepared from now on stay until the launch after.
  void begin_launch() { ++launch_; }
  // A cache that holds exactly `past`, with room for so many tokens more; valid until the next begin_launch(). An Error
  // when there are not pages enough for all that this launch wants.
  Result<KvCache*> prepare(SessionId session, std::span<const TokenId> past, std::int64_t more);
  // The launch has computed `tokens` behind it, and the cache was told so (KvCache::commit).
  void computed(SessionId session, std::span<const TokenId> tokens);

 private:
  struct Held {
    KvCache cache;
    std::vector<TokenId> tokens{};  // that it holds
    std::uint64_t used = 0;         // the launch that last wanted it
  };

  void share(Held& held, std::span<const TokenId> past) const;
  Result<void> reserve(Held& held, std::int64_t tokens);
  bool drop_longest_unused();
  Result<void> compute(Held& held, std::span<const TokenId> past);

  Engine& engine_;
  std::unordered_map<SessionId, Held> held_;
  std::uint64_t launch_ = 0;
};

}  // namespace troupe
