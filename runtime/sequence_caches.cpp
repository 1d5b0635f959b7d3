#include "runtime/sequence_caches.h"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {
namespace {

std::int64_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

Result<KvCache*> SequenceCaches::find(SessionId session, std::span<const TokenId> past, std::int64_t more) {
  Held& held = held_.try_emplace(session, Held{KvCache(pages_)}).first->second;
  held.used = launch_;
  share(held, past);
  if (auto reserved = reserve(held, std::ssize(past) + more); !reserved) return reserved.error();
  return &held.cache;
}

Result<KvCache*> SequenceCaches::prepare(SessionId session, std::span<const TokenId> past, std::int64_t more) {
  auto found = find(session, past, more);
  if (!found) return found;
  if (auto done = compute(held_.at(session), past); !done) return done.error();
  return found;
}

void SequenceCaches::computed(SessionId session, std::span<const TokenId> tokens) {
  auto& all = held_.at(session).tokens;
  all.insert(all.end(), tokens.begin(), tokens.end());
}

// Leaves in `held` the longest beginning of `past` that anybody holds. A fork for less than a page is not worth one.
// Most begin with the same words of the house and part there: one look at the token that would make them longer tells,
// where to compare a thousand of them would be milliseconds before each launch.
void SequenceCaches::share(Held& held, std::span<const TokenId> past) const {
  std::int64_t most = common_length(held.tokens, past);
  const Held* best = nullptr;
  std::int64_t wanted = most + KvLayout::kPageTokens;
  for (const auto& [session, other] : held_) {
    if (wanted > std::min(std::ssize(past), std::ssize(other.tokens))) continue;
    const auto last = static_cast<std::size_t>(wanted - 1);
    if (other.tokens[last] != past[last]) continue;
    const std::int64_t common = common_length(other.tokens, past);
    if (common < wanted) continue;
    most = common;
    wanted = common + 1;
    best = &other;
  }
  if (best != nullptr) {
    held.cache = best->cache.fork(most);
  } else {
    held.cache.truncate(most);
  }
  held.tokens.assign(past.begin(), past.begin() + most);
}

Result<void> SequenceCaches::reserve(Held& held, std::int64_t tokens) {
  while (!held.cache.reserve(tokens)) {
    if (drop_longest_unused()) continue;
    return Error{ErrorCode::out_of_memory, "the KV memory of " + std::to_string(pages_->total()) +
                                               " pages does not hold the sequences of one launch: give more with "
                                               "--kv-memory"};
  }
  return {};
}

bool SequenceCaches::drop_longest_unused() {
  const auto oldest = std::ranges::min_element(held_, {}, [](const auto& entry) { return entry.second.used; });
  if (oldest == held_.end() || oldest->second.used == launch_) return false;
  held_.erase(oldest);
  return true;
}

Result<void> SequenceCaches::compute(Held& held, std::span<const TokenId> past) {
  while (std::ssize(held.tokens) < std::ssize(past)) {
    auto next = past.subspan(held.tokens.size());
    next = next.first(std::min(next.size(), static_cast<std::size_t>(max_rows_)));
    const KvLease lease = held.cache.lend();
    Slice slice{.cache = &lease, .position = held.cache.length(), .tokens = next};
    run_({&slice, 1});
    if (slice.failed) {
      held.cache.revoke();
      return Error{ErrorCode::engine_failed, "what stands before a step cannot be computed: " + slice.failure};
    }
    held.tokens.insert(held.tokens.end(), next.begin(), next.end());
    held.cache.commit(std::ssize(held.tokens));
  }
  return {};
}

}  // namespace troupe
