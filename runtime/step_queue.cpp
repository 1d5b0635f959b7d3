#include "runtime/step_queue.h"

#include <algorithm>
#include <utility>

#include "kernels/check.h"

namespace troupe {
namespace {

// A new figure counts a quarter: three launches forget most of a disturbed one.
double blend(double old_value, double new_value) {
  return old_value + 0.25 * (new_value - old_value);
}

}  // namespace

void LaunchCost::learn(std::int64_t rows, Seconds took) {
  if (rows <= 2) {
    base_ = base_ == 0.0 ? took.count() : blend(base_, took.count());
  } else if (rows >= 16) {
    const double over = std::max(took.count() - base_, 0.1 * took.count());
    per_row_ = blend(per_row_, over / static_cast<double>(rows));
  }
}

std::int64_t LaunchCost::rows_within(Seconds budget) const {
  const double rows = (budget.count() - base_) / std::max(per_row_, 1e-7);
  return rows < 1.0 ? 1 : static_cast<std::int64_t>(std::min(rows, 1e6));
}

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

std::span<Slice> StepQueue::gather() {
  drop_revoked();
  slices_.clear();
  gathered_.clear();
  rows_ = 0;
  for (auto& waiting : waiting_) {
    if (rows_ == max_rows_) break;
    if (waiting->decodes()) add_slice(*waiting, 1);
  }
  decode_rows_ = rows_;
  const std::int64_t within = cost_.rows_within(decode_rows_ > 0 ? kDecodeBudget : kPrefillBudget);
  gather_prefill(std::clamp(within - rows_, std::int64_t{1}, std::max<std::int64_t>(max_rows_ - rows_, 0)));
  return slices_;
}

void StepQueue::gather_prefill(std::int64_t budget) {
  std::vector<Waiting*> candidates;
  for (auto& waiting : waiting_) {
    if (!waiting->decodes()) candidates.push_back(waiting.get());
  }
  if (candidates.empty()) {
    served_.clear();
    return;
  }
  while (budget > 0 && !candidates.empty()) {
    Waiting* next = next_prefill(candidates);
    const std::int64_t rows = std::min(budget, next->remaining());
    add_slice(*next, rows);
    served_[next->step.key] += rows;
    budget -= rows;
    std::erase(candidates, next);
  }
}

// The oldest step of the key that has had the fewest rows. A key that comes new starts level with the least served one.
StepQueue::Waiting* StepQueue::next_prefill(const std::vector<Waiting*>& candidates) {
  std::int64_t least = 0;
  bool any = false;
  for (const auto& [key, rows] : served_) {
    least = any ? std::min(least, rows) : rows;
    any = true;
  }
  Waiting* best = nullptr;
  std::int64_t best_rows = 0;
  for (Waiting* waiting : candidates) {
    const std::int64_t rows = served_.try_emplace(waiting->step.key, least).first->second;
    if (best == nullptr || rows < best_rows) {
      best = waiting;
      best_rows = rows;
    }
  }
  return best;
}

void StepQueue::add_slice(Waiting& waiting, std::int64_t rows) {
  const Step& step = waiting.step;
  Slice slice;
  slice.cache = &step.cache;
  slice.position = step.cache.position() + waiting.done;
  slice.tokens = std::span(step.tokens).subspan(static_cast<std::size_t>(waiting.done), static_cast<std::size_t>(rows));
  slice.wants_token = rows == waiting.remaining();
  slice.sampling = step.sampling.get();
  slice.state = step.state.get();
  slice.ban_end = step.ban_end;
  slice.logprobs = step.logprobs;
  slices_.push_back(std::move(slice));
  gathered_.push_back(&waiting);
  rows_ += rows;
}

void StepQueue::finish(TimePoint now, Seconds took) {
  cost_.learn(rows_, took);
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
  if (!slice.failed && waiting.remaining() > 0) return;
  waiting.step.cache = {};
  waiting.step.sampling.reset();
  waiting.step.state.reset();
  if (slice.failed) {
    waiting.done = static_cast<std::int64_t>(waiting.step.tokens.size());
    waiting.answer(Error{ErrorCode::step_failed, std::move(slice.failure)});
    return;
  }
  awaited_.insert(waiting.step.session);
  waiting.answer(std::move(slice.sampled));
}

void StepQueue::fail_all(const Error& error) {
  auto waiting = std::exchange(waiting_, {});
  slices_.clear();
  gathered_.clear();
  awaited_.clear();
  for (auto& entry : waiting) entry->answer(error);
}

}  // namespace troupe
