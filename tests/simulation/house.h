// House: all the actors of a host on one thread, under a false clock. Nothing happens that is not asked for.
//
// CAF's test scheduler keeps a list of the actors that have something to do. run_one() lets one of them, chosen by the
// seed, take one message. What this explores: every order in which actors take their turns, message by message, in the
// seams of a launch too. What it does not: two messages of one mailbox never overtake each other (in one process CAF
// keeps the order in which they were sent), and a handler is never interrupted (the thread sanitizer's part).
#pragma once

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <map>
#include <memory>
#include <string>

#include "actors/supervisor.h"
#include "tests/support/random.h"

namespace troupe::test {

// How run_one() chooses.
enum class Schedule : std::uint8_t {
  uniform,
  in_order,  // mostly who has waited longest
  newest,    // mostly who came last
  starving,  // one actor mostly waits until it is alone
};
constexpr std::int64_t kSchedules = 4;

class House {
 public:
  House(std::shared_ptr<Engine> engine, SupervisorOptions options, Schedule schedule, Random& random);
  // What is left of a house that broke its promises is swept away.
  ~House();

  caf::actor_system& system() { return *system_; }
  const HostControl& host() const { return host_; }

  bool idle() const { return scheduler().jobs.empty(); }
  // False when nobody has anything to do. Names who took a message.
  bool run_one(std::string* who = nullptr);

  TimePoint now() const { return scheduler().clock().now(); }
  void advance(caf::timespan time) { scheduler().advance_time(time); }
  // To the next timer, but by a tick of the host at most: its next one may not be set yet.
  void advance_to_next_timer();

  // The newest actor of this name, "troupe.batcher" say; false when none was seen yet.
  bool kill(const std::string& name);
  // Its id; 0: none was seen yet.
  caf::actor_id newest(const std::string& name) const;
  // The host ends, with all that it has.
  void end_host();
  std::size_t actors() const { return system_->registry().running(); }

 private:
  caf::scheduler::test_coordinator& scheduler() const {
    return static_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  }
  std::size_t choose();

  Random& random_;
  Schedule schedule_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  HostControl host_;
  std::map<std::string, caf::weak_actor_ptr> seen_;
  std::uint64_t starved_ = 0;  // id of the actor
};

}  // namespace troupe::test
