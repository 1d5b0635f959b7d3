// Recorder: what one batcher tells a record. Without a writer it is off, and every call is a look at a null pointer.
//
// The batcher calls it in the order of its own doings: what is pushed to its StepQueue, who leaves, each reading of the
// clock, each batch, each launch. From these a replay feeds a queue of its own (replay.h).
// What is known is written twice a launch: before it, so that a launch that ends the process is in the record, and
// after it, when its answers are on their way.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "runtime/isolate.h"
#include "runtime/record/record_writer.h"
#include "runtime/step_queue.h"

namespace troupe {

class Recorder {
 public:
  Recorder(std::shared_ptr<RecordWriter> writer, const BatcherBegan& began);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // `run`, whose faults are noted. The recorder outlives it.
  RunBatch watched(RunBatch run);

  // The step's number.
  std::uint64_t arrived(const Step& step);
  void left(SessionId session);
  void guessed(SessionId session, std::span<const TokenId> tokens, float odds);
  void read_clock(TimePoint now);  // and no batch was due
  // The queue found this step withdrawn: between the clock's reading and gathered().
  void withdrawn(std::uint64_t step);
  void gathered(TimePoint now, std::span<const Slice> batch);
  // Before StepQueue::finish, which takes the answers away.
  void ended(TimePoint now, Seconds took, std::span<const Slice> batch);
  // Hands what was noted to the file. An error, once: the record ends here, and nothing else does.
  std::optional<Error> write();

 private:
  std::shared_ptr<RecordWriter> writer_;
  std::uint64_t steps_ = 0, calls_ = 0;
  std::vector<std::uint64_t> withdrawn_;
  std::vector<RecordedFault> faults_;  // of the launch in work
};

// What a record says of a step, a slice and its outcome.
StepArrived recorded(const Step& step);
RecordedSlice recorded(const Slice& slice);
SliceOutcome outcome_of(const Slice& slice);

}  // namespace troupe
