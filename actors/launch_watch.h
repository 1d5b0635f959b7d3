// Tells a launch that hangs from a process that was not run.
//
// A launch's age by the clock is the wrong measure: a process that is stopped (SIGSTOP, a debugger, a suspended laptop)
// for a minute has a launch a minute old and nothing wrong with it. So its age is summed over the watcher's own ticks,
// and a gap between two of them counts as two ticks at most.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe {

class LaunchWatch {
 public:
  using Clock = std::chrono::steady_clock;

  LaunchWatch(Clock::duration limit, Clock::duration tick) : limit_(limit), longest_gap_(2 * tick) {}

  // To be called at every tick; `launch` is any number that differs between launches, 0 between two of them.
  bool hangs(Clock::time_point now, std::int64_t launch) {
    const Clock::duration gap = std::min(now - last_tick_, longest_gap_);
    age_ = launch == launch_ ? age_ + gap : Clock::duration::zero();
    last_tick_ = now;
    launch_ = launch;
    return launch != 0 && age_ > limit_;
  }

 private:
  Clock::duration limit_, longest_gap_, age_{0};
  Clock::time_point last_tick_{};
  std::int64_t launch_ = 0;
};

}  // namespace troupe
