// SequenceCaches: keys and values by what they are of. Whoever knows a sequence's tokens gets a cache of them, or of as
// many of its first as somebody computed here.
//
// For the sequences that no session owns: those of a replay (runtime/record/) and of a draft model. A cache a session,
// which holds what its last launch left. What a session lacks is taken from another's cache that begins alike (a fork:
// pages are shared), and the rest is to be computed. When no page is free, the caches that were not used for longest
// are dropped; what was in them is computed again when it is wanted. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/result.h"
#include "runtime/isolate.h"

namespace troupe {

class SequenceCaches {
 public:
  SequenceCaches(std::shared_ptr<PagePool> pages, RunBatch run, std::int64_t max_rows)
      : pages_(std::move(pages)), run_(std::move(run)), max_rows_(max_rows) {}

  // The next launch begins: caches that are asked for from now on stay until the launch after.
  void begin_launch() { ++launch_; }
  // A cache of the longest beginning of `past` that was computed, with room for all of it and so many tokens more;
  // valid until the next begin_launch(). An Error when there are not pages enough for all that this launch wants.
  Result<KvCache*> find(SessionId session, std::span<const TokenId> past, std::int64_t more);
  // The same, of all of `past`: what is missing is computed.
  Result<KvCache*> prepare(SessionId session, std::span<const TokenId> past, std::int64_t more);
  // A launch has computed `tokens` behind it, and the cache was told so (KvCache::commit).
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

  std::shared_ptr<PagePool> pages_;
  RunBatch run_;
  std::int64_t max_rows_;
  std::unordered_map<SessionId, Held> held_;
  std::uint64_t launch_ = 0;
};

}  // namespace troupe
