// replay: computes a recorded run once more, and compares every batch and every answer with what the record says.
//
//     auto record = RecordReader::open("run.record");
//     auto engine = Engine::open(record->header().model, *replay_options(record->header()));
//     auto report = replay(*record, **engine);
//     if (report && report->all_equal()) ...
//
// The queue of steps is fed with the recorded arrivals, clock readings and measured times, so it takes the recorded
// batches or the code has changed; the engine computes them; tokens, log-probabilities and failures must have the
// recorded bits. Any engine of the record's fingerprint will do, on any number of threads and any instruction set.
//
// What comes from outside of both is given and not compared: faults that the engine threw (StepFault), and the answers
// of steps with a logits processor, which is a C++ function and in no file. After a token that differs the replay goes
// on with the recorded one; after a batch that differs it stops, as all that follows stands on it.
// A record may be an enemy's: it can waste time and be refused, and no more.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/result.h"
#include "runtime/engine.h"
#include "runtime/record/record_reader.h"

namespace troupe {

struct ReplayReport {
  std::uint64_t launches = 0, equal_launches = 0;  // equal: the same slices in the same order
  std::uint64_t answers = 0, equal_answers = 0;    // of steps: tokens and failures
  std::uint64_t tokens = 0;                        // of the answers
  std::uint64_t outside = 0;                       // answers beside these that came from a logits processor
  std::uint64_t faults = 0;                        // that the engine threw: given, not computed
  std::uint64_t unfinished = 0;                    // launches without an end: they ended their batcher, or the record
  std::uint64_t batchers = 0;
  bool torn = false;             // the record ends within an event
  std::string first_difference;  // a sentence; empty: there is none

  bool all_equal() const { return first_difference.empty(); }
};

// Reads the record to its end. An Error: the engine is of another fingerprint, the record is damaged or says what
// cannot be, or the launches do not fit the engine's memory.
Result<ReplayReport> replay(RecordReader& record, Engine& engine);

}  // namespace troupe
