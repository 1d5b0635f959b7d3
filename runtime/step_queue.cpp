#include "runtime/step_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/check.h"

namespace troupe {

void StepQueue::push(Step step, StepAnswer answer) {
  TROUPE_CHECK(!step.tokens.empty());
  awaited_.erase(step.session);
  waiting_.push_back(std::make_unique<Waiting>(Waiting{std::move(step), std::move(answer)}));
}

void StepQueue::drop_revoked() {
  std::erase_if(waiting_, [](const std::unique_ptr<Waiting>& waiting) {
    if (!waiting->step.cache.revoked()) return false;
    waiting->answer(Error{ErrorCode::cancelled, "the step was withdrawn before it ran"});
    return true;
  });
}

std::span<const Step* const> StepQueue::decoding() {
  decoding_.clear();
  for (const auto& waiting : waiting_) {
    if (waiting->step.cache.revoked()) continue;
    if (!waiting->decodes()) return {};
    decoding_.push_back(&waiting->step);
  }
  return decoding_;
}

// Of several steps of a session all but the last were withdrawn.
void StepQueue::guess(SessionId session, std::span<const TokenId> tokens, float odds) {
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(),
                                 [&](const auto& waiting) { return waiting->step.session == session; });
  if (last == waiting_.rend() || !(*last)->decodes()) return;
  Step& step = (*last)->step;
  (*last)->keep_drafts(0);
  step.tokens.insert(step.tokens.end(), tokens.begin(), tokens.end());
  step.drafts = static_cast<std::int32_t>(tokens.size());
  step.draft_odds = odds;
}

std::span<Slice> StepQueue::gather() {
  drop_revoked();
  slices_.clear();
  gathered_.clear();
  work_ = {};
  const LaunchWork decode = decode_work();
  choose_drafts(decode);
  share_out(room(decode));
  add_slices(true);
  decode_rows_ = std::ssize(slices_);
  add_slices(false);
  return slices_;
}

// One row of each step that decodes.
LaunchWork StepQueue::decode_work() const {
  LaunchWork work;
  for (const auto& waiting : waiting_) {
    if (waiting->decodes()) work.add(waiting->position(), 1);
  }
  return work;
}

void StepQueue::Waiting::keep_drafts(std::int64_t count) {
  step.tokens.resize(step.tokens.size() - static_cast<std::size_t>(step.drafts - count));
  step.drafts = static_cast<std::int32_t>(count);
}

// Everyone's first guess, then everyone's second, and so on, each by what the launch costs with those before it.
void StepQueue::choose_drafts(LaunchWork work) {
  auto tokens = static_cast<double>(work.rows);
  std::int64_t spare = spare_rows();
  bool more = work.rows > 0;
  for (std::int32_t nth = 1; std::exchange(more, false); ++nth) {
    for (auto& waiting : waiting_) {
      if (waiting->step.drafts < nth || !waiting->decodes()) continue;
      const double odds = std::pow(waiting->step.draft_odds, nth);
      LaunchWork wider = work;
      wider.add(waiting->position() + nth, 1);
      const Seconds launch = cost_.of(work), row = cost_.of(wider) - launch;
      if (spare <= 0 || odds * launch <= tokens * row) {
        waiting->keep_drafts(nth - 1);
        continue;
      }
      --spare;
      work = wider;
      tokens += odds;
      more = true;
    }
  }
}

StepQueue::Room StepQueue::room(const LaunchWork& decode) const {
  const bool prompts_wait = decode.rows < std::ssize(waiting_);
  if (!prompts_wait) return {.least = max_rows_};
  const Seconds step = cost_.of(decode);
  const bool streams = decode.rows > 0 || awaits_anyone();
  const Seconds budget = std::clamp(kStall * step, streams ? kDecodeBudget : kPrefillBudget, kLongestBudget);
  const Seconds time = budget - cost_.of({});
  return {decode.rows + 1, time, std::clamp<std::int64_t>(cost_.rows_within(time, 0) / 8, 1, kPortion)};
}

void StepQueue::share_out(Room room) {
  shares_.begin();
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    waiting_[i]->taken = 0;
    shares_.offer(waiting_[i]->step.key, waiting_[i]->lane(), i);
  }
  std::int64_t rows = 0;
  while (const auto next = shares_.next()) {
    Waiting& waiting = *waiting_[*next];
    const std::int64_t most = std::min(portion(waiting, room), max_rows_ - rows);
    if (most <= 0) break;
    LaunchWork more;
    more.add(waiting.position() + waiting.taken, most);
    room.time -= cost_.of(more) - cost_.of({});
    room.least -= most;
    waiting.taken += most;
    rows += most;
    shares_.took(cost_.rows_worth(more), waiting.taken == waiting.remaining());
  }
  shares_.end();
}

std::int64_t StepQueue::portion(const Waiting& waiting, const Room& room) const {
  const std::int64_t in_time = cost_.rows_within(room.time, waiting.position() + waiting.taken);
  const std::int64_t most = std::max(in_time, std::min<std::int64_t>(room.least, 1));
  return std::min({most, room.portion, waiting.remaining() - waiting.taken});
}

void StepQueue::add_slices(bool of_decode) {
  for (auto& waiting : waiting_) {
    if (waiting->taken > 0 && waiting->decodes() == of_decode) add_slice(*waiting);
  }
}

void StepQueue::add_slice(Waiting& waiting) {
  if (waiting.step.drafts > 0) waiting.keep_drafts(std::min<std::int64_t>(waiting.step.drafts, waiting.taken - 1));
  waiting.after.resize(static_cast<std::size_t>(waiting.step.drafts));
  const Step& step = waiting.step;
  Slice slice;
  slice.session = step.session;
  slice.cache = &step.cache;
  slice.position = waiting.position();
  slice.tokens =
      std::span(step.tokens).subspan(static_cast<std::size_t>(waiting.done), static_cast<std::size_t>(waiting.taken));
  slice.wants_token = waiting.taken == waiting.remaining();
  slice.sampling = step.sampling.get();
  slice.state = step.state.get();
  slice.no_end_for = step.no_end_for;
  slice.logprobs = step.logprobs;
  slice.drafts = step.drafts;
  slice.after = waiting.after;
  slices_.push_back(std::move(slice));
  gathered_.push_back(&waiting);
  work_.add(waiting.position(), waiting.taken);
}

void StepQueue::finish(TimePoint now, Seconds took) {
  cost_.learn(work_, took);
  awaited_.clear();
  const auto share = std::chrono::duration_cast<TimePoint::duration>(took / kLingerShare);
  linger_until_ = now + std::max(linger_, share);
  for (std::size_t i = 0; i < slices_.size(); ++i) settle(*gathered_[i], slices_[i]);
  std::erase_if(waiting_, [](const std::unique_ptr<Waiting>& waiting) { return waiting->remaining() == 0; });
  slices_.clear();
  gathered_.clear();
}

// What a step borrowed goes before its answer: by then the session owns its pages and its sampler state alone again.
void StepQueue::settle(Waiting& waiting, Slice& slice) {
  waiting.done += static_cast<std::int64_t>(slice.tokens.size());
  if (!slice.failed && !slice.wants_token) return;
  waiting.step.cache = {};
  waiting.step.sampling.reset();
  waiting.step.state.reset();
  waiting.done = static_cast<std::int64_t>(waiting.step.tokens.size());
  if (slice.failed) {
    waiting.answer(Error{ErrorCode::step_failed, std::move(slice.failure)});
    return;
  }
  awaited_.insert(waiting.step.session);
  waiting.after.resize(static_cast<std::size_t>(slice.right));
  waiting.answer(StepTokens{std::move(slice.sampled), std::move(waiting.after), slice.drafts});
}

void StepQueue::fail_all(const Error& error) {
  auto waiting = std::exchange(waiting_, {});
  slices_.clear();
  gathered_.clear();
  awaited_.clear();
  for (auto& entry : waiting) entry->answer(error);
}

}  // namespace troupe
