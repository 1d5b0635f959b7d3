// Sessions that have pages and no turn, the longest idle first.
#pragma once

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

namespace troupe {

class IdleSessions {
 public:
  bool empty() const { return by_age_.empty(); }
  // Its turn is over.
  void add(const caf::actor_addr& session) {
    remove(session);
    ages_[session] = ++last_age_;
    by_age_.emplace(last_age_, session);
  }
  // It has a turn, or is no more.
  void remove(const caf::actor_addr& session) {
    const auto known = ages_.find(session);
    if (known == ages_.end()) return;
    by_age_.erase(known->second);
    ages_.erase(known);
  }
  std::optional<caf::actor_addr> take_longest() {
    if (by_age_.empty()) return std::nullopt;
    const caf::actor_addr session = by_age_.begin()->second;
    remove(session);
    return session;
  }

 private:
  std::unordered_map<caf::actor_addr, std::uint64_t> ages_;
  std::map<std::uint64_t, caf::actor_addr> by_age_;
  std::uint64_t last_age_ = 0;
};

}  // namespace troupe
