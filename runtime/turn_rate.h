// TurnRate: how fast turns end while others wait, and so how long it may take until so many have been served.
//
// Counts over about the last minute in which somebody waited; what an idle house does tells nothing of a full one.
// Plain data: time comes in as a parameter.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "runtime/time.h"

namespace troupe {

class TurnRate {
 public:
  static constexpr Seconds kMemory{60.0};
  static constexpr std::chrono::seconds kLeast{1}, kMost{600};

  void turn_ended() { ++ended_; }

  // A few times a second. `waited`: somebody stands in line.
  void tick(TimePoint now, bool waited) {
    if (waited && last_) {
      const Seconds elapsed = now - *last_;
      const double kept = std::exp(-elapsed / kMemory);
      turns_ = turns_ * kept + static_cast<double>(ended_);
      seconds_ = seconds_ * kept + elapsed.count();
    }
    ended_ = 0;
    last_ = now;
  }

  // Whole seconds, kLeast to kMost. As long as no turn has ended, it is as if one were just about to.
  std::chrono::seconds time_for(std::int64_t turns) const {
    const double seconds = static_cast<double>(turns) * seconds_ / std::max(turns_, 1.0);
    const double most = static_cast<double>(kMost.count()), least = static_cast<double>(kLeast.count());
    return std::chrono::seconds(std::llround(std::ceil(std::clamp(seconds, least, most))));
  }

 private:
  std::int64_t ended_ = 0;  // since the last tick
  double turns_ = 0.0, seconds_ = 0.0;
  std::optional<TimePoint> last_;
};

}  // namespace troupe
