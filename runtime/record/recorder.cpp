#include "runtime/record/recorder.h"

#include <utility>

#include "kernels/fault.h"

namespace troupe {
namespace {

StepOrigin origin_of(const Step& step) {
  StepOrigin origin;
  origin.key = step.key;
  origin.background = step.background;
  origin.past = *step.past;
  origin.sampling = *step.sampling;
  if (!step.state) return origin;
  origin.processed = step.state->processor != nullptr;
  origin.state = *step.state;
  return origin;
}

}  // namespace

StepArrived recorded(const Step& step) {
  StepArrived arrived;
  arrived.session = step.session;
  arrived.position = step.cache.position();
  arrived.tokens = step.tokens;
  arrived.no_end_for = step.no_end_for;
  arrived.logprobs = step.logprobs;
  arrived.drafts = step.drafts;
  arrived.draft_odds = step.draft_odds;
  if (step.past) arrived.origin = origin_of(step);
  return arrived;
}

RecordedSlice recorded(const Slice& slice) {
  return {slice.session, slice.position, std::ssize(slice.tokens), slice.wants_token, slice.drafts};
}

SliceOutcome outcome_of(const Slice& slice) {
  if (slice.failed) return {.failure = slice.failure};
  if (!slice.wants_token) return {};
  const auto right = slice.after.first(static_cast<std::size_t>(slice.right));
  return {.sampled = slice.sampled, .after = {right.begin(), right.end()}};
}

Recorder::Recorder(std::shared_ptr<RecordWriter> writer, const BatcherBegan& began) : writer_(std::move(writer)) {
  if (writer_) writer_->add(began);
}

RunBatch Recorder::watched(RunBatch run) {
  if (!writer_) return run;
  return [this, run = std::move(run)](std::span<Slice> batch) {
    const std::uint64_t call = calls_++;
    try {
      run(batch);
    } catch (const StepFault& fault) {
      faults_.push_back({call, fault.what()});
      throw;
    }
  };
}

std::uint64_t Recorder::arrived(const Step& step) {
  if (writer_) writer_->add(recorded(step));
  return steps_++;
}

void Recorder::left(SessionId session) {
  if (writer_) writer_->add(SessionLeft{session});
}

void Recorder::guessed(SessionId session, std::span<const TokenId> tokens, float odds) {
  if (writer_) writer_->add(StepGuessed{session, {tokens.begin(), tokens.end()}, odds});
}

void Recorder::read_clock(TimePoint now) {
  if (writer_) writer_->add(ClockRead{now});
}

void Recorder::withdrawn(std::uint64_t step) {
  if (writer_) withdrawn_.push_back(step);
}

void Recorder::gathered(TimePoint now, std::span<const Slice> batch) {
  if (!writer_) return;
  BatchGathered event{now, std::exchange(withdrawn_, {}), {}};
  for (const Slice& slice : batch) event.slices.push_back(recorded(slice));
  writer_->add(event);
  calls_ = 0;
  faults_.clear();
}

void Recorder::ended(TimePoint now, Seconds took, std::span<const Slice> batch) {
  if (!writer_) return;
  LaunchEnded event{now, took, std::exchange(faults_, {}), {}};
  for (const Slice& slice : batch) event.outcomes.push_back(outcome_of(slice));
  writer_->add(event);
}

std::optional<Error> Recorder::write() {
  return writer_ ? writer_->write() : std::nullopt;
}

}  // namespace troupe
