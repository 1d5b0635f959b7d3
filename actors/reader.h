// The reader: the actor end of one blocking call. It asks a session for a turn, collects the text as the sink, and
// hands both to the thread that waits, through a queue that is bounded by the turn's credit.
//
// Credit goes back when the thread has really taken a delta, so a slow caller parks its session.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "actors/messages.h"

namespace troupe {

// What the reader and the waiting thread share.
class Mailslot {
 public:
  void put(TextDelta delta);
  void finish(Result<TurnEnd> end);

  // Waits for the next delta, or for the end: nothing then. False at the deadline: neither came.
  bool next(std::chrono::steady_clock::time_point deadline, std::optional<TextDelta>& delta);
  Result<TurnEnd> take_end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TextDelta> deltas_;
  std::optional<Result<TurnEnd>> end_;
};

// Sends `turn` to the session and fills the slot. Ends by itself when the turn has ended.
SinkActor spawn_reader(caf::actor_system& system, SessionActor session, Turn turn, bool wants_text,
                       std::shared_ptr<Mailslot> slot);

}  // namespace troupe
