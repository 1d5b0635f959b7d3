#include "runtime/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/planted_fault.h"

namespace troupe {
namespace {

constexpr std::int64_t kPage = KvLayout::kPageTokens;

// Tokens of the full pages that two prompts have in common.
std::int64_t common(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return (end - a.begin()) / kPage * kPage;
}

}  // namespace

Admission::Admission(std::shared_ptr<PagePool> pool, std::shared_ptr<PrefixIndex> index, KeyWeights weights)
    : pool_(std::move(pool)), index_(std::move(index)), weights_(std::move(weights)) {}

void Admission::push(PageRequest request, TimePoint deadline, Answer answer) {
  // A turn that asks for other pages does not run meanwhile. It began, so the line is never too full for it.
  const auto ran = running_.find(request.session);
  const bool goes_on = ran != running_.end() && ran->second == request.turn;
  if (goes_on) running_.erase(ran);
  leaders_.erase(request.session);
  if (const auto refused = refuse(request, goes_on)) return answer(*refused);
  stand_in_line({std::move(request), deadline, std::move(answer)});
  serve();
}

double Admission::finish(const Waiter& waiter) const {
  return waiter.start + static_cast<double>(pages_for(waiter.request.worst_case)) / weights_[waiter.request.key];
}

void Admission::stand_in_line(Waiter newcomer) {
  const std::string& key = newcomer.request.key;
  const auto last =
      std::find_if(line_.rbegin(), line_.rend(), [&](const Waiter& one) { return one.request.key == key; });
  const auto served = finished_.find(key);
  const double behind = last != line_.rend() ? finish(*last) : served != finished_.end() ? served->second : 0.0;
  newcomer.start = std::max(now_, behind);
  const auto place = std::ranges::upper_bound(line_, newcomer.start, {}, &Waiter::start);
  const auto stands = line_.insert(place, std::move(newcomer));
  overtake(static_cast<std::size_t>(stands - line_.begin()));
}

// Changes places, not the places themselves, with those of its key.
void Admission::overtake(std::size_t place) {
  if (line_[place].request.background) return;
  for (std::size_t ahead = place; ahead-- > 0;) {
    Waiter& other = line_[ahead];
    if (other.request.key != line_[place].request.key) continue;
    if (!other.request.background || other.overtaken == kOvertaken) return;
    ++other.overtaken;
    std::swap(other, line_[place]);
    std::swap(other.start, line_[place].start);
    place = ahead;
  }
}

void Admission::count_served(const Waiter& waiter) {
  now_ = std::max(now_, waiter.start);
  finished_[waiter.request.key] = finish(waiter);
  std::erase_if(finished_, [this](const auto& entry) { return entry.second <= now_; });
}

std::optional<Error> Admission::refuse(const PageRequest& request, bool goes_on) const {
  const std::string total = std::to_string(pool_->total());
  if (const std::int64_t pages = pages_for(request.worst_case); pages > pool_->total()) {
    return Error{ErrorCode::out_of_memory, "the turn may need " + std::to_string(pages) +
                                               " pages of 16 tokens; the whole pool has " + total +
                                               ": ask for fewer tokens or give more --kv-memory"};
  }
  if (goes_on) return std::nullopt;
  std::int64_t for_pages = 0, of_key = 0;
  for (const Waiter& waiter : line_) {
    if (waiter.leader) continue;
    ++for_pages;
    if (waiter.request.key == request.key) ++of_key;
  }
  if (of_key < kLineLimit - for_pages) return std::nullopt;
  const std::chrono::seconds wait = rate_.time_for(for_pages);
  return Error{ErrorCode::overloaded,
               std::to_string(for_pages) + " turns wait for KV memory, " + std::to_string(of_key) +
                   " of them of this key (" + std::to_string(pool_->free()) + " of " + total +
                   " pages free): try again in about " + std::to_string(wait.count()) + " s",
               wait};
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
  if (line_.empty()) finished_.clear();  // where all were served, all begin alike
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
  if (!reserve(cache, request)) return Outcome::no_pages;
  if (use_found) *request.cache = std::move(anew);
  index_->count(std::ssize(before_last), found > own ? found : 0);
  running_[request.session] = request.turn;
  count_served(waiter);
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

bool Admission::reserve(KvCache& cache, const PageRequest& request) {
  if (cache.reserve(request.worst_case, request.payer)) return true;
  index_->evict(cache.pages_missing(request.worst_case) - pool_->free());
  return cache.reserve(request.worst_case, request.payer);
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
  if (const auto leader = leaders_.find(session);
      leader != leaders_.end() && leader->second.turn <= turn && !planted(PlantedFault::leader_death_untold)) {
    leaders_.erase(leader);
  }
  if (const auto running = running_.find(session); running != running_.end() && running->second <= turn) {
    running_.erase(running);
    rate_.turn_ended();
  }
}

void Admission::drop_late(TimePoint now) {
  rate_.tick(now, !line_.empty());
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
