// A record: everything that a host's batchers decided by, in order, and what came of it, so that a run can be computed
// once more, launch by launch and bit by bit (replay.h). What is in it is said here, what its bytes are in fields.h.
//
// The file (little-endian): the 16 bytes of kRecordMagic; u32 version; u32 bytes of the header, the header. Then the
// events: u32 bytes; a byte for the kind and its fields; u64 Fnv64 of all of the file that stands before, checksums
// left out. So an event that was changed, lost, moved or doubled is found, and a file that ends within an event (the
// process was killed, the disk was full) is good up to there.
//
// A step says in full what it stands on (StepOrigin) only where the step before it does not tell: at the beginning of a
// turn, when a window has moved, and after a batcher's death. In between a step is some 60 bytes. Keys and values are
// in no record: they are a function of the tokens (docs/numerics.md), and a replay computes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/batch.h"
#include "runtime/sampling_params.h"
#include "runtime/time.h"

namespace troupe {

constexpr char kRecordMagic[16] = {'t', 'r', 'o', 'u', 'p', 'e', ' ', 'r', 'e', 'c', 'o', 'r', 'd', ' ', '\r', '\n'};
constexpr std::uint32_t kRecordVersion = 2;

// The engine that ran. A replay needs one of the same fingerprint; the rest says how to open it.
struct RecordHeader {
  std::uint64_t fingerprint = 0;  // Engine::fingerprint
  std::uint64_t numerics = 0;     // kNumericsVersion
  std::string model;              // the path it was opened by: a hint
  std::string engine;             // Engine::describe, for people
  std::uint8_t kv_type = 0;       // KvType
  bool expand_to_f32 = false;
  std::int64_t context = 0;
  std::int64_t max_rows = 0;
  std::uint64_t kv_memory = 0;  // bytes
};

// A batcher with nothing to do: the first, or one that follows one that died. What waited is gone.
struct BatcherBegan {
  std::int64_t max_rows = 0;
  bool fuse = true;
  std::chrono::nanoseconds linger{0};
  std::map<std::string, int> weights{};
};

struct StepOrigin {
  std::string key;
  bool background = false;
  std::vector<TokenId> past;  // as many as the step's position
  SamplingParams sampling;
  bool processed = false;  // by a logits processor: a C++ function, which no file can hold
  std::optional<SamplerState> state;
};

// Steps are numbered from 0 in the order in which they came to their batcher.
struct StepArrived {
  SessionId session = 0;
  std::int64_t position = 0;
  std::vector<TokenId> tokens;
  std::int32_t no_end_for = 0;
  std::int32_t logprobs = -1;
  std::int32_t drafts = 0;
  float draft_odds = 0.0f;
  std::optional<StepOrigin> origin;  // without one: that of the session's last step, and its tokens
};

struct SessionLeft {
  SessionId session = 0;
};

// A draft model's guesses for the session's last step, in place of those that it came with. For the batch that is
// gathered next, by the same reading of the clock.
struct StepGuessed {
  SessionId session = 0;
  std::vector<TokenId> tokens;
  float odds = 0.0f;
};

// The clock was read, and no batch was due.
struct ClockRead {
  TimePoint now{};
};

struct RecordedSlice {
  SessionId session = 0;
  std::int64_t position = 0;
  std::int64_t rows = 0;
  bool wants_token = false;
  std::int32_t drafts = 0;
  bool operator==(const RecordedSlice&) const = default;
};

// The clock was read, a batch was due, and this is what it took. The numbers are of steps that were found withdrawn.
struct BatchGathered {
  TimePoint now{};
  std::vector<std::uint64_t> withdrawn;
  std::vector<RecordedSlice> slices;
};

// A StepFault that the engine threw at the so-many-th call within a launch (runtime/isolate.h repeats some).
struct RecordedFault {
  std::uint64_t call = 0;
  std::string what;
};

// What became of a slice: a token and those after right guesses, a failure, or neither (more of its step is to come).
struct SliceOutcome {
  std::optional<Sampled> sampled{};
  std::vector<Sampled> after{};
  std::optional<std::string> failure{};
};

// The launch of the last batch is over. One that ended its batcher has no such event.
struct LaunchEnded {
  TimePoint now{};
  Seconds took{0};
  std::vector<RecordedFault> faults;
  std::vector<SliceOutcome> outcomes;  // one a slice
};

// The kind is the place.
using RecordEvent =
    std::variant<BatcherBegan, StepArrived, SessionLeft, ClockRead, BatchGathered, LaunchEnded, StepGuessed>;

}  // namespace troupe
