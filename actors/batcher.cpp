#include "actors/batcher.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "actors/errors.h"
#include "actors/log.h"
#include "runtime/record/recorder.h"

namespace troupe {
namespace {

// A few sessions that come back at all come within it; a crowd may take longer, after launches that took far longer.
constexpr TimePoint::duration kAwake = std::chrono::microseconds(300);

class BatcherState {
 public:
  static constexpr const char* name = "troupe.batcher";

  // Waits for those who are on their way for `awake` before it sleeps.
  BatcherState(BatcherActor::pointer self, BatcherOptions options, TimePoint::duration awake)
      : self_(self),
        options_(std::move(options)),
        awake_(awake),
        queue_(options_.max_rows, options_.linger, options_.weights),
        recorder_(options_.record, {options_.max_rows, options_.fuse, options_.linger, options_.weights.by_key()}),
        run_(recorder_.watched(options_.run)) {
    if (options_.draft.run && options_.drafts > 0) draft_model_.emplace(options_.draft, options_.drafts);
  }

  BatcherActor::behavior_type make_behavior() {
    // What a launch throws ends this actor with its sentence; the host reads it from the down message.
    self_->set_exception_handler([](std::exception_ptr& thrown) { return to_caf(from_exception(thrown)); });
    return {
        [this](step_atom, Step& step) { return on_step(std::move(step)); },
        [this](leave_atom, SessionId session) {
          recorder_.left(session);
          queue_.leave(session);
          launch_when_ready();
        },
        [this](stats_atom) { return stats_; },
        [this](launch_atom, std::uint64_t number) {
          if (number == launches_asked_) {
            asked_ = false;
            launch_when_ready();
          }
        },
    };
  }

 private:
  caf::result<StepTokens> on_step(Step step) {
    auto promise = self_->make_response_promise<StepTokens>();
    const bool stranger = !queue_.awaits_anyone();
    const std::uint64_t number = recorder_.arrived(step);
    if (draft_model_) draft_model_->arrived(step);
    queue_.push(std::move(step), [this, number, promise](Result<StepTokens> result) mutable {
      if (result) {
        promise.deliver(std::move(*result));
      } else {
        if (result.error().code == ErrorCode::cancelled) recorder_.withdrawn(number);
        promise.deliver(to_caf(result.error()));
      }
    });
    // Nobody is waited for: this step may start at once, but behind what already stands in the mailbox, so that steps
    // that came together run together.
    if (stranger) {
      if (!asked_) wake_after(TimePoint::duration::zero());
    } else {
      launch_when_ready();
    }
    return promise;
  }

  // Launches at once when the gather rule allows it, else asks to be woken when the linger is over.
  void launch_when_ready() {
    if (queue_.empty()) return;
    const auto now = self_->clock().now();
    if (queue_.ready(now)) {
      launch(now);
      // What is left (a prompt in slices, or more than fits) goes on behind the messages that came meanwhile.
      if (!queue_.empty()) return wake_after(TimePoint::duration::zero());
      if (queue_.awaits_anyone()) mail_comes();
      return;
    }
    recorder_.read_clock(now);
    // What came need not be what is waited for: another look follows behind it.
    const bool mail = mail_comes();
    if (!asked_) wake_after(mail ? TimePoint::duration::zero() : queue_.linger_until() - self_->clock().now());
  }

  // Waits awake for mail while someone is on the way.
  bool mail_comes() {
    const auto until = std::min(queue_.linger_until(), self_->clock().now() + awake_);
    while (self_->mailbox().empty()) {
      if (self_->clock().now() >= until) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void wake_after(TimePoint::duration delay) {
    asked_ = true;
    ++launches_asked_;
    if (delay <= TimePoint::duration::zero()) {
      self_->send(self_, launch_atom_v, launches_asked_);
    } else {
      self_->delayed_send(self_, delay, launch_atom_v, launches_asked_);
    }
  }

  void launch(TimePoint now) {
    watch(now);
    guess();
    const std::span<Slice> batch = queue_.gather();
    recorder_.gathered(now, batch);
    write_record();
    if (batch.empty()) return watch({});
    const auto began = self_->clock().now();
    watch(began);
    run_launch(run_, batch, options_.fuse);
    const auto ended = self_->clock().now();
    watch({});
    count(batch, ended - began);
    if (draft_model_) draft_model_->learn(batch);
    recorder_.ended(ended, ended - began, batch);
    queue_.finish(ended, ended - began);
    write_record();
  }

  void watch(TimePoint began) {
    if (options_.launch_began) options_.launch_began->store(began.time_since_epoch().count());
  }

  // A draft model that fails is given up: it would only cost time.
  void guess() {
    if (!draft_model_) return;
    const auto guesses = draft_model_->guess(queue_.decoding(), queue_.spare_rows(), queue_.cost(),
                                             [this] { return self_->clock().now(); });
    if (!guesses) {
      log_warning("the draft model failed and guesses no more: " + guesses.error().message);
      draft_model_.reset();
      return;
    }
    stats_.drafting = draft_model_->spent();
    for (const DraftModel::Guess& guess : *guesses) {
      recorder_.guessed(guess.session, guess.tokens, guess.odds);
      queue_.guess(guess.session, guess.tokens, guess.odds);
    }
  }

  void write_record() {
    if (const auto lost = recorder_.write()) log_warning(lost->message);
  }

  void count(std::span<const Slice> batch, Seconds took) {
    const std::size_t width = batch.size();
    const auto decoding = static_cast<std::size_t>(queue_.decode_rows());
    stats_.launches += options_.fuse ? 1 : width;
    for (const Slice& slice : batch) {
      stats_.rows += slice.tokens.size();
      stats_.drafts += static_cast<std::uint64_t>(slice.drafts);
      stats_.right_drafts += static_cast<std::uint64_t>(slice.right);
    }
    if (stats_.by_width.size() <= width) stats_.by_width.resize(width + 1);
    if (stats_.by_decode_width.size() <= decoding) stats_.by_decode_width.resize(decoding + 1);
    ++stats_.by_width[width];
    ++stats_.by_decode_width[decoding];
    stats_.busy += took;
  }

  BatcherActor::pointer self_;
  BatcherOptions options_;
  TimePoint::duration awake_;
  StepQueue queue_;
  Recorder recorder_;
  RunBatch run_;  // the engine, as the recorder sees it
  std::optional<DraftModel> draft_model_;
  LaunchStats stats_;
  std::uint64_t launches_asked_ = 0;  // number of the newest wake-up; older ones that still arrive are stale
  bool asked_ = false;
};

}  // namespace

BatcherActor spawn_batcher(caf::actor_system& system, BatcherOptions options, bool detached) {
  using Impl = BatcherActor::stateful_impl<BatcherState>;
  if (detached) return system.spawn<Impl, caf::detached>(std::move(options), kAwake);
  return system.spawn<Impl>(std::move(options), TimePoint::duration::zero());
}

}  // namespace troupe
