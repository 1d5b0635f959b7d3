// Simulation: a whole house lives one life that a seed decides, on one thread, in false time, and keeps its promises.
//
// What is looked at after each event, by whom:
//     every request is answered once                          user.h (none is left at the end), ledger.h
//     what comes is the truth, or a beginning of it           ledger.h
//     an error has a cause                                    ledger.h
//     no more text under way than credit was given            ledger.h
//     a page has one writer, and nobody loses what it reads   hash_model.h
//     somebody moves on as long as somebody waits             settle()
//     every used page belongs to a session or to the index    count_pages(), when all is at rest
//     what all have paid is what the used pages have cost     move()
//     at the end: no page used, no account open, no actor left  close_house()
// The first promise that is broken ends the life. The same seed gives the same life, event by event.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/hash_model.h"
#include "tests/simulation/house.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/user.h"

namespace troupe::test {

// Engines of every size, opened once: a house leaves an engine as it found it, with all pages free.
class Engines {
 public:
  std::shared_ptr<Engine> of(std::int64_t pages, std::int64_t max_rows);
  // After a life that broke a promise.
  void forget() { open_.clear(); }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<Engine>> open_;
};

struct Life {
  std::string broken;            // the promise that was; empty: none
  std::vector<std::string> log;  // of events, when it was kept
  std::int64_t events = 0;
  std::int64_t launches = 0;
  std::int64_t turns = 0;
  std::int64_t guesses = 0, right_guesses = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Engines& engines, bool keeps_log);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();
  Life run();

 private:
  bool sound() const { return life_.broken.empty(); }
  void report(const std::string& what);
  void note(const std::string& what);

  void move();  // one actor takes a message, or something happens
  void happen(Event event);
  void speak(Event event, User& user, std::size_t number);
  void trouble(Event event);
  void batcher_dies();
  void arm(Event fault);
  User& new_user();
  void say(User& user, Turn turn);

  void launch(std::span<Slice> batch);
  DraftEngine draft_engine();
  void draft(std::span<Slice> batch);
  void seam(std::span<Slice> batch);
  void hang();

  void settle();
  void count_pages();
  void close_house();
  int waiting() const;

  std::uint64_t seed_;
  Random random_;
  Scenario scenario_;
  bool keeps_log_;
  Life life_;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Trouble> trouble_ = std::make_shared<Trouble>();
  HashModel model_;
  std::shared_ptr<PagePool> draft_pages_;  // few: it has to forget
  HashModel draft_model_;
  std::int64_t draft_launches_ = 0;
  std::deque<std::unique_ptr<User>> users_;  // the first one keeps the house: never vanishes
  std::optional<House> house_;               // goes before its users
  std::optional<KvCache> thief_;             // pages that nobody gets

  bool launching_ = false;
  bool peace_ = false;  // no more trouble
  int step_faults_ = 0;
  bool device_fault_ = false;
  bool hang_ = false;
  int deaths_ = 0;                                // of batchers
  caf::actor_id text_actor_ = 0;                  // the newest that was seen
  std::map<std::uint64_t, std::int64_t> doomed_;  // sampling seed -> launches until its steps fail
};

}  // namespace troupe::test
