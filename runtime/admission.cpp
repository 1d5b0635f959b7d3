#include "runtime/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe {
namespace {

constexpr std::int64_t kPage = KvLayout::kPageTokens;

// Tokens of the full pages that two prompts have in common.
std::int64_t common(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return (end - a.begin()) / kPage * kPage;
}

}  // namespace

Admission::Admission(std::shared_ptr<PagePool> pool, std::shared_ptr<PrefixIndex> index)
    : pool_(std::move(pool)), index_(std::move(index)) {}

void Admission::push(PageRequest request, TimePoint deadline, Answer answer) {
  forget(request.session, request.turn);  // a turn that asks for other pages does not run meanwhile
  if (const auto refused = refuse(request)) return answer(*refused);
  line_.push_back({std::move(request), deadline, std::move(answer), std::nullopt});
  serve();
}

std::optional<Error> Admission::refuse(const PageRequest& request) const {
  const std::string total = std::to_string(pool_->total());
  if (const std::int64_t pages = pages_for(request.worst_case); pages > pool_->total()) {
    return Error{ErrorCode::out_of_memory, "the turn may need " + std::to_string(pages) +
                                               " pages of 16 tokens; the whole pool has " + total +
                                               ": ask for fewer tokens or give more --kv-memory"};
  }
  const auto for_pages = std::ranges::count_if(line_, [](const Waiter& waiter) { return !waiter.leader; });
  if (for_pages < kLineLimit) return std::nullopt;
  return Error{ErrorCode::overloaded, std::to_string(for_pages) + " turns wait for KV memory (" +
                                          std::to_string(pool_->free()) + " of " + total +
                                          " pages free): try again later"};
}

void Admission::serve() {
  short_ = false;
  for (auto at = line_.begin(); at != line_.end();) {
    switch (admit(*at)) {
      case Outcome::no_pages:
        short_ = true;
        return;
      case Outcome::follows:
        ++at;
        break;
      case Outcome::admitted:
        at = line_.erase(at);
    }
  }
}

Admission::Outcome Admission::admit(Waiter& waiter) {
  PageRequest& request = waiter.request;
  if (waiter.leader && leaders_.contains(*waiter.leader)) return Outcome::follows;
  // The last token is always computed: somebody has to produce the next one.
  const auto before_last = std::span(*request.prompt).first(request.prompt->size() - 1);
  const auto prefix = index_->find(request.key, before_last);
  const std::int64_t found = std::ssize(prefix->ids) * kPage, own = request.cache->length();
  waiter.leader = leader_for(request, std::max(found, own));
  if (waiter.leader) return Outcome::follows;
  // What was found is held only while there is hope: a turn in line must not keep pages that it has not computed.
  // What sleeps is woken behind what was found: a page less to fill, and one that others hold already.
  const bool use_found = found > request.cache->awake();
  KvCache anew = request.cache->asleep() ? request.cache->fork(own) : KvCache(pool_);
  if (use_found) anew.begin_with(*prefix);
  KvCache& cache = use_found ? anew : *request.cache;
  if (!reserve(cache, request.worst_case)) return Outcome::no_pages;
  if (use_found) *request.cache = std::move(anew);
  index_->count(std::ssize(before_last), found > own ? found : 0);
  running_[request.session] = request.turn;
  if (index_->keeps_pages())
    leaders_[request.session] = {request.turn, request.key, request.prompt, std::max(found, own)};
  waiter.answer(PageGrant{std::move(request.cache)});
  return Outcome::admitted;
}

// At least half of what the leader still computes must be of use, a page of it at least.
std::optional<SessionId> Admission::leader_for(const PageRequest& request, std::int64_t known) const {
  for (const auto& [session, leader] : leaders_) {
    if (session == request.session || leader.key != request.key) continue;
    const std::int64_t use = common(*leader.prompt, *request.prompt) - std::max(known, leader.from);
    if (use >= kPage && 2 * use >= std::ssize(*leader.prompt) - leader.from) return session;
  }
  return std::nullopt;
}

bool Admission::reserve(KvCache& cache, std::int64_t tokens) {
  if (cache.reserve(tokens)) return true;
  index_->evict(cache.pages_missing(tokens) - pool_->free());
  return cache.reserve(tokens);
}

bool Admission::reclaim() {
  if (!running_.empty()) return false;
  const auto holder =
      std::find_if(line_.rbegin(), line_.rend(), [](const Waiter& one) { return one.request.cache->capacity() > 0; });
  if (holder == line_.rend()) return false;
  *holder->request.cache = KvCache(pool_);
  return true;
}

void Admission::published(SessionId session, std::uint64_t turn) {
  const auto leader = leaders_.find(session);
  if (leader == leaders_.end() || leader->second.turn != turn) return;
  leaders_.erase(leader);
  serve();
}

void Admission::leave(SessionId session, std::uint64_t turn) {
  forget(session, turn);
  serve();
}

void Admission::leave(SessionId session) {
  leave(session, std::numeric_limits<std::uint64_t>::max());
}

void Admission::forget(SessionId session, std::uint64_t turn) {
  std::erase_if(line_,
                [&](const Waiter& waiter) { return waiter.request.session == session && waiter.request.turn <= turn; });
  if (const auto leader = leaders_.find(session); leader != leaders_.end() && leader->second.turn <= turn) {
    leaders_.erase(leader);
  }
  if (const auto running = running_.find(session); running != running_.end() && running->second <= turn) {
    running_.erase(running);
  }
}

void Admission::drop_late(TimePoint now) {
  std::erase_if(line_, [&](Waiter& waiter) {
    if (now < waiter.deadline) return false;
    waiter.answer(Error{ErrorCode::timed_out, "the turn waited too long for " +
                                                  std::to_string(pages_for(waiter.request.worst_case)) + " pages; " +
                                                  std::to_string(pool_->free()) + " are free"});
    return true;
  });
  serve();
}

}  // namespace troupe
