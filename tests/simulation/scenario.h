// Scenario: what a seed decides before anything happens: the size of the house, the kinds of trouble that will come
// (each in about half of the seeds, so that they come alone, too) and how much is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/records.h"
#include "tests/simulation/house.h"
#include "tests/support/random.h"

namespace troupe::test {

enum class Event : std::uint8_t {
  say,
  say_nothing,   // a turn of no tokens: the session goes on with what it has
  say_too_much,  // text that the text actor tokenizes, and that no context can hold
  pass_time,
  stop,
  close,
  fork,
  read_transcript,
  rest,  // everything comes to an end, and the pages are counted
  kill_session,
  vanish,  // the reader dies
  stall,
  read_on,
  take_pages,  // nobody else gets these
  give_pages,
  step_fault,    // once or twice: nobody may notice
  device_fault,  // the batcher dies
  kill_batcher,
  kill_text_actor,
  hang,
  jump,  // of the clock
  drain,
};
constexpr std::int64_t kEvents = static_cast<std::int64_t>(Event::drain) + 1;
const char* name(Event event);

struct Scenario {
  explicit Scenario(Random& random);

  Event draw(Random& random) const;
  Turn draw_turn(Random& random) const;
  std::string describe() const;

  Schedule schedule;
  std::int64_t pages;     // of the pool
  std::int64_t max_rows;  // of a launch
  std::int64_t users;
  std::int64_t events;  // that are drawn
  std::int64_t max_sessions;
  std::uint64_t prefix_memory;
  std::int32_t drafts;  // that a session may guess
  bool mayhem;          // the batcher may die more often than it is replaced
  bool deadlines;
  bool doom;  // some turns' steps fail for good

 private:
  std::vector<std::int64_t> weights_;  // of events
};

}  // namespace troupe::test
