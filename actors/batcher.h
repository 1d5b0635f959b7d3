// The batcher: the one actor that calls the engine. It collects the steps that are pending, fuses them into one launch,
// and answers each session with its next token. It remembers nothing about a session between launches, but for what a
// draft model was told (runtime/draft_model.h), which guesses before a launch and never changes a token.
//
// Runs detached on its own thread; the launch happens inside a handler. While those who were just answered are on their
// way back it waits awake and lets others have its processor: to sleep and to be woken, once for each of them, took 100
// to 150 us of a launch of 2 ms (two cores of a virtual machine), and takes 30 so. A failing step fails alone
// (runtime/isolate.h); anything else that a launch throws ends the batcher: every step that waits is then answered by
// CAF with an error, and the host, which owns the engine, starts the next one.
#pragma once

#include <atomic>
#include <memory>

#include "actors/messages.h"
#include "runtime/draft_model.h"
#include "runtime/isolate.h"
#include "runtime/record/record_writer.h"
#include "runtime/step_queue.h"

namespace troupe {

// Where the host's watchdog looks: steady-clock nanoseconds at which the launch in work began, 0 between launches.
using LaunchClock = std::atomic<std::int64_t>;

struct BatcherOptions {
  RunBatch run;
  std::int64_t max_rows = 512;
  std::shared_ptr<LaunchClock> launch_began;  // may be null
  // C8's unfused mode: every step is a launch of its own. For benchmarks that separate fusing from concurrency.
  bool fuse = true;
  std::chrono::nanoseconds linger = StepQueue::kLinger;
  KeyWeights weights{};
  std::shared_ptr<RecordWriter> record{};  // may be null
  DraftEngine draft{};
  std::int32_t drafts = 0;  // guesses a step that the draft model may make
};

// Spawns undetached when `detached` is false: the deterministic test scheduler needs it so.
BatcherActor spawn_batcher(caf::actor_system& system, BatcherOptions options, bool detached = true);

}  // namespace troupe
