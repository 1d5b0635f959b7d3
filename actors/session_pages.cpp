// What happens to a session's pages.
#include <algorithm>
#include <utility>

#include "actors/errors.h"
#include "actors/session_state.h"

namespace troupe {

// -- the window --

// True when other tokens are seen than those that the cache is of: all but the sinks have other positions now.
bool SessionState::follow_window() {
  const std::int64_t now = settings_.window.dropped(length());
  if (now == dropped_) return false;
  cache_.truncate(std::min(cache_.length(), settings_.window.sinks));
  dropped_ = now;
  return true;
}

// The tokens that the cache is of.
std::shared_ptr<const std::vector<TokenId>> SessionState::past() const {
  auto tokens = visible(0);
  tokens.resize(static_cast<std::size_t>(cache_.length()));
  return std::make_shared<const std::vector<TokenId>>(std::move(tokens));
}

// -- queued: pages for the worst case --

void SessionState::reserve() {
  told_ = false;
  const std::int64_t most = most_seen();
  const std::int64_t worst_case = std::min(most, seen() + work_->tokens_left(most, std::ssize(work_->answer.tokens())));
  const bool may_be_known = home_.prefixes->keeps_pages() && seen() - cache_.length() > KvLayout::kPageTokens;
  if (!may_be_known && cache_.pages_missing(worst_case) == 0) return send_step();
  phases_.enter(SessionPhase::queued, now());  // not parked: credit that comes while the cache is away starts nothing
  auto prompt = std::make_shared<const std::vector<TokenId>>(visible(0));
  PageRequest request{id_,         turn_,      settings_.key,          std::move(prompt),
                      hand_over(), worst_case, work_->turn.background, account_.payer()};
  ask_host<PageGrant>(
      caf::infinite, [this](PageGrant& grant) { on_grant(std::move(*grant.cache)); }, reserve_atom_v,
      std::move(request), work_->remaining(now()));
}

// The cache goes away for a while. What sleeps is kept here too: nothing of it is lost if the turn ends meanwhile.
std::shared_ptr<KvCache> SessionState::hand_over() {
  KvCache kept = cache_.asleep() ? cache_.fork(cache_.length()) : KvCache(home_.pages);
  return std::make_shared<KvCache>(std::exchange(cache_, std::move(kept)));
}

void SessionState::on_grant(KvCache cache) {
  cache_ = std::move(cache);
  if (cache_.asleep()) {
    return ask_host<Handover>(
        work_->remaining(now()), [this](Handover& woken) { on_grant(std::move(*woken.cache)); }, wake_atom_v,
        Handover{hand_over()});
  }
  leads_ = true;
  if (work_->answer.tokens().empty()) work_->was_admitted(cache_.length(), now());
  send_step();
}

void SessionState::tell_freed(std::uint64_t turn) {
  if (auto host = caf::actor_cast<HostControl>(home_.host)) self_->send(host, freed_atom_v, id_, turn);
}

// -- what others may find, or have --

// Others may begin with what is committed here. Whoever waits for this session's prompt is told.
void SessionState::publish() {
  if (!cache_.computed_here()) return;
  if (dropped_ > 0) return home_.prefixes->publish(settings_.key, visible(0), cache_.full_pages());
  home_.prefixes->publish(settings_.key, conversation_.tokens(), cache_.full_pages());  // without a copy
}

void SessionState::publish_prompt() {
  leads_ = false;
  publish();
  if (auto host = caf::actor_cast<HostControl>(home_.host)) self_->send(host, published_atom_v, id_, turn_);
}

caf::result<Branch> SessionState::on_fork(std::int64_t tokens) const {
  auto branch = Branch::fork(settings_, conversation_, cache_, dropped_, tokens, *home_.text->vocabulary);
  if (!branch) return to_caf(branch.error());
  return std::move(*branch);
}

// -- sleep --

// The store copies a fork; who speaks meanwhile keeps its pages. Without a copy the tokens are computed again.
caf::result<bool> SessionState::on_sleep() {
  if (work_ || cache_.capacity() == 0) return false;
  auto host = caf::actor_cast<HostControl>(home_.host);
  if (!host || !home_.may_sleep || cache_.length() == 0) return fall_asleep(turn_, nullptr);
  auto promise = self_->make_response_promise<bool>();
  Handover fork{std::make_shared<KvCache>(cache_.fork(cache_.length()))};
  self_->request(host, caf::infinite, sleep_atom_v, std::move(fork))
      .then([this, turn = turn_, promise](Asleep& copy) mutable { promise.deliver(fall_asleep(turn, copy.kv)); },
            [this, turn = turn_, promise](caf::error&) mutable { promise.deliver(fall_asleep(turn, nullptr)); });
  return promise;
}

bool SessionState::fall_asleep(std::uint64_t turn, std::shared_ptr<const SleepingKv> copy) {
  if (work_ || turn != turn_ || cache_.capacity() == 0) return false;
  if (copy) {
    cache_.fall_asleep(std::move(copy));
  } else {
    cache_ = KvCache(home_.pages);
  }
  rest();
  return true;
}

}  // namespace troupe
