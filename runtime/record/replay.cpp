#include "runtime/record/replay.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernels/fault.h"
#include "runtime/record/believable.h"
#include "runtime/record/fields.h"
#include "runtime/record/record_header.h"
#include "runtime/record/record_words.h"
#include "runtime/record/recorder.h"
#include "runtime/record/told_sessions.h"
#include "runtime/sequence_caches.h"

namespace troupe {
namespace {

Error out_of_place(const char* what) {
  return {ErrorCode::bad_input, std::string("the record says what cannot be: ") + what};
}

bool same_bits(const SliceOutcome& a, const SliceOutcome& b) {
  std::string bytes[2];
  FieldWriter first(bytes[0]), second(bytes[1]);
  first(a);
  second(b);
  return bytes[0] == bytes[1];
}

class Replay {
 public:
  explicit Replay(Engine& engine)
      : engine_(engine),
        within_{engine.shape().vocabulary, engine.context(), engine.max_rows()},
        caches_(
            engine.pages(), [&engine](std::span<Slice> batch) { engine.run(batch); }, engine.max_rows()),
        told_(engine.text().vocabulary, engine.context()) {}

  Result<void> take(const RecordEvent& event) {
    if (!queue_ && !std::holds_alternative<BatcherBegan>(event)) return out_of_place("it begins without a batcher");
    const bool ends = std::holds_alternative<LaunchEnded>(event) || std::holds_alternative<BatcherBegan>(event);
    if (!ends && !batch_.empty()) return out_of_place("something happens within a launch");
    return std::visit([this](const auto& one) { return on(one); }, event);
  }
  bool goes_on() const { return goes_on_; }

  ReplayReport report(bool torn) {
    drop_launch();
    report_.torn = torn;
    return report_;
  }

 private:
  Result<void> on(const BatcherBegan& began) {
    if (auto checked = believable(began, within_); !checked) return checked;
    drop_launch();
    waiting_.clear();
    steps_ = 0;
    fuse_ = began.fuse;
    queue_.emplace(began.max_rows, began.linger, *KeyWeights::of(began.weights));
    ++report_.batchers;
    return {};
  }

  Result<void> on(const StepArrived& arrived) {
    if (auto checked = believable(arrived, within_); !checked) return checked;
    auto withdrawn = std::make_shared<std::atomic<bool>>(false);
    auto step = told_.step(arrived, withdrawn);
    if (!step) return step.error();
    waiting_.emplace(steps_, std::move(withdrawn));
    queue_->push(std::move(*step), [this, number = steps_](const Result<StepTokens>&) { waiting_.erase(number); });
    ++steps_;
    return {};
  }

  Result<void> on(const SessionLeft& left) {
    queue_->leave(left.session);
    return {};
  }

  Result<void> on(const StepGuessed& guessed) {
    if (auto checked = believable(guessed, within_); !checked) return checked;
    if (auto told = told_.guessed(guessed); !told) return told;
    queue_->guess(guessed.session, guessed.tokens, guessed.odds);
    return {};
  }

  Result<void> on(const ClockRead& read) {
    if (auto checked = believable(read.now); !checked) return checked;
    if (queue_->ready(read.now)) differ_for_good("the record waited behind it where the replay begins the next");
    return {};
  }

  Result<void> on(const BatchGathered& gathered) {
    if (auto checked = believable(gathered.now); !checked) return checked;
    for (const std::uint64_t number : gathered.withdrawn) {
      const auto step = waiting_.find(number);
      if (step == waiting_.end()) return out_of_place("a step was withdrawn that does not wait");
      step->second->store(true, std::memory_order_release);
    }
    if (!queue_->ready(gathered.now)) {
      differ_for_good("the record began it where the replay waits");
      return {};
    }
    batch_ = queue_->gather();
    if (!gathered.slices.empty() || !batch_.empty()) compare(gathered.slices);
    return {};
  }

  Result<void> on(const LaunchEnded& ended) {
    if (batch_.empty()) return out_of_place("a launch ends that did not begin");
    if (auto checked = believable(ended, slices_, within_); !checked) return checked;
    if (auto launched = launch(ended); !launched) return launched;
    for (std::size_t i = 0; i < batch_.size(); ++i) settle(batch_[i], ended.outcomes[i]);
    leases_.clear();
    queue_->finish(ended.now, ended.took);
    batch_ = {};
    for (std::size_t i = 0; i < slices_.size(); ++i) told_.gave(slices_[i].session, ended.outcomes[i]);
    report_.faults += ended.faults.size();
    return {};
  }

  // -- batches --

  void compare(const std::vector<RecordedSlice>& recorded_slices) {
    ++report_.launches;
    slices_.clear();
    for (const Slice& slice : batch_) slices_.push_back(recorded(slice));
    if (slices_ == recorded_slices) {
      ++report_.equal_launches;
      return;
    }
    const auto [is, was] = std::ranges::mismatch(slices_, recorded_slices);
    differ_for_good("slice " + std::to_string(is - slices_.begin() + 1) + " was " +
                    (was == recorded_slices.end() ? "not there" : words(*was)) + ", and is " +
                    (is == slices_.end() ? "not there" : words(*is)));
    batch_ = {};
  }

  void drop_launch() {
    if (!batch_.empty()) ++report_.unfinished;
    batch_ = {};
  }

  // -- launches --

  Result<void> launch(const LaunchEnded& ended) {
    if (auto lent = lend(); !lent) return lent;
    std::uint64_t call = 0;
    const RunBatch run = [&](std::span<Slice> batch) {
      const auto fault = std::ranges::find(ended.faults, call++, &RecordedFault::call);
      if (fault != ended.faults.end()) throw StepFault(fault->what);
      engine_.run(batch);
    };
    run_launch(run, batch_, fuse_);
    return {};
  }

  // The queue's slices get the keys and values of their sessions.
  Result<void> lend() {
    std::unordered_set<SessionId> sessions;
    caches_.begin_launch();
    lent_.clear();
    for (const Slice& slice : batch_) {
      if (!sessions.insert(slice.session).second) return out_of_place("a session is twice in a launch");
      const auto past = told_.past(slice);
      if (!past) return past.error();
      auto cache = caches_.prepare(slice.session, *past, std::ssize(slice.tokens));
      if (!cache) return cache.error();
      lent_.push_back(*cache);
    }
    for (KvCache* cache : lent_) leases_.push_back(cache->lend());
    for (std::size_t i = 0; i < leases_.size(); ++i) batch_[i].cache = &leases_[i];
    return {};
  }

  // What the slice computed is kept, what it gave is compared; the queue goes on as the record did.
  void settle(Slice& slice, const SliceOutcome& was) {
    KvCache& cache = *lent_[static_cast<std::size_t>(&slice - batch_.data())];
    if (slice.failed) {
      cache.revoke();
    } else {
      const auto sure = slice.tokens.first(slice.tokens.size() - static_cast<std::size_t>(slice.drafts - slice.right));
      cache.commit(slice.position + std::ssize(sure));
      caches_.computed(slice.session, sure);
    }
    count(slice, was);
    slice.failed = was.failure.has_value();
  }

  void count(const Slice& slice, const SliceOutcome& was) {
    const bool answered = was.sampled || was.failure;
    if (answered && told_.processed(slice.session)) {
      ++report_.outside;
      return;
    }
    const SliceOutcome is = outcome_of(slice);
    const bool same = same_bits(was, is);
    report_.answers += answered ? 1 : 0;
    report_.equal_answers += answered && same ? 1 : 0;
    report_.tokens += (was.sampled ? 1 : 0) + was.after.size();
    if (!same) differ("session " + std::to_string(slice.session) + " got " + words(was) + ", and now " + words(is));
  }

  void differ(const std::string& how) {
    if (report_.first_difference.empty())
      report_.first_difference = "launch " + std::to_string(report_.launches) + ": " + how;
  }
  void differ_for_good(const std::string& how) {
    differ(how);
    goes_on_ = false;
  }

  Engine& engine_;
  BelievableWithin within_;
  SequenceCaches caches_;
  ToldSessions told_;
  ReplayReport report_;
  bool goes_on_ = true;

  std::optional<StepQueue> queue_;
  bool fuse_ = true;
  std::uint64_t steps_ = 0;                                                        // that came to this batcher
  std::unordered_map<std::uint64_t, std::shared_ptr<std::atomic<bool>>> waiting_;  // by number: whether withdrawn

  std::span<Slice> batch_;             // of the launch in work
  std::vector<RecordedSlice> slices_;  // the same, in the record's words
  std::vector<KvCache*> lent_;         // to each of batch_
  std::vector<KvLease> leases_;
};

Result<ReplayReport> replay_all(RecordReader& record, Engine& engine) {
  Replay replay(engine);
  while (replay.goes_on()) {
    auto event = record.next();
    if (!event) return event.error();
    if (!*event) break;
    if (auto taken = replay.take(**event); !taken) {
      return Error{taken.error().code, record.path() + ": " + taken.error().message};
    }
  }
  return replay.report(record.torn());
}

}  // namespace

Result<ReplayReport> replay(RecordReader& record, Engine& engine) {
  if (auto checked = check_engine(record.header(), engine); !checked) {
    return Error{checked.error().code, record.path() + ": " + checked.error().message};
  }
  try {
    return replay_all(record, engine);
  } catch (const std::exception& fault) {
    return Error{ErrorCode::engine_failed, record.path() + ": the engine failed in the replay: " + fault.what()};
  }
}

}  // namespace troupe
