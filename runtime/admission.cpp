#include "runtime/admission.h"

#include <algorithm>
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
  if (line_.size() < kLineLimit) return std::nullopt;
  return Error{ErrorCode::overloaded, std::to_string(line_.size()) + " turns wait for KV memory (" +
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
  const auto prefix = index_->find(request.key, std::span(*request.prompt).first(request.prompt->size() - 1));
  const std::int64_t found = std::ssize(prefix->ids) * kPage, own = request.cache->length();
  waiter.leader = leader_for(request, std::max(found, own));
  if (waiter.leader) return Outcome::follows;
  if (found > own) {
    *request.cache = KvCache(pool_);
    request.cache->begin_with(*prefix);
  }
  if (!reserve(*request.cache, request.worst_case)) return Outcome::no_pages;
  if (index_->keeps_pages()) leaders_[request.session] = {request.key, request.prompt, request.cache->length()};
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
  const auto holder =
      std::find_if(line_.rbegin(), line_.rend(), [](const Waiter& one) { return one.request.cache->capacity() > 0; });
  if (holder == line_.rend()) return false;
  *holder->request.cache = KvCache(pool_);
  return true;
}

void Admission::published(SessionId session) {
  if (leaders_.erase(session) > 0) serve();
}

void Admission::leave(SessionId session) {
  std::erase_if(line_, [session](const Waiter& waiter) { return waiter.request.session == session; });
  leaders_.erase(session);
  serve();
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
