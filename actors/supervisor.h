// The supervisor: the host actor of one process. It owns the engine, opens sessions, keeps the list of the living, the
// line of turns that wait for pages (runtime/admission.h) and the index of prefixes, and starts a new batcher when one
// dies.
//
// Restarts have a limit (actors/restart_limit.h): past it the engine counts as failed, every session is told,
// and opens are refused. There is never a second batcher for one engine: the next starts only after the down message
// of the last. A launch that takes longer than hang_limit turns `ready` off and fails the turns in work; when it ends
// after all, the sessions get their batcher back.
// Ends on an exit message, taking sessions, batcher and text actor with it.
#pragma once

#include <chrono>
#include <limits>
#include <memory>

#include "actors/messages.h"
#include "runtime/draft_model.h"
#include "runtime/engine.h"
#include "runtime/isolate.h"
#include "runtime/kv/sleep_room.h"
#include "runtime/record/record_writer.h"
#include "runtime/step_queue.h"

namespace troupe {

struct SupervisorOptions {
  bool detached = true;  // false under the deterministic test scheduler
  bool fuse = true;      // BatcherOptions::fuse
  RunBatch run;          // what a test puts in the engine's place; empty: Engine::run
  // A test that counts who shares a launch waits for everyone, however late the machine lets them be.
  std::chrono::nanoseconds linger = StepQueue::kLinger;
  std::chrono::nanoseconds hang_limit = std::chrono::seconds(60);  // tests wait less
  std::int64_t max_sessions = 100'000;
  // Bytes of keys and values that the index of prefixes may hold; 0: nothing is shared. What only the index holds is
  // given back whenever pages are wanted.
  std::uint64_t prefix_memory = std::numeric_limits<std::uint64_t>::max();
  // Where the keys and values of idle sessions go that have to make room; null: they are computed again.
  std::shared_ptr<SleepRoom> sleep_room;

  // Tokens that a session may guess ahead (runtime/prompt_lookup.h); 0: none. No token changes by it. Each guess that
  // is computed is a row; which ones pay, the batcher decides (runtime/step_queue.h).
  std::int32_t drafts = 0;
  // Guesses where a session's history tells nothing, or less (runtime/draft_model.h).
  DraftEngine draft{};

  // What the batchers decide by is appended here, and what came of it; null: nowhere. One host at a time may have it.
  std::shared_ptr<RecordWriter> record;
  KeyWeights weights;  // of the keys, for the rows of launches and the pages of the line

  static constexpr std::chrono::milliseconds kTick{250};
  // A long session of a large model is gigabytes, and disks are slow.
  static constexpr std::chrono::minutes kFileLimit{30};
};

HostControl spawn_supervisor(caf::actor_system& system, std::shared_ptr<Engine> engine, SupervisorOptions options);

}  // namespace troupe
