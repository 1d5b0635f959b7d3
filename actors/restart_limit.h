// RestartLimit: how often something that dies may be started again. Plain data; time comes in as a parameter.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "runtime/time.h"

namespace troupe {

class RestartLimit {
 public:
  static constexpr std::size_t kMost = 3;
  static constexpr std::chrono::seconds kWindow{10};

  // It died at `now`: true when it may be started once more, which counts.
  bool allow(TimePoint now) {
    while (!recent_.empty() && now - recent_.front() > kWindow) recent_.pop_front();
    if (recent_.size() >= kMost) return false;
    recent_.push_back(now);
    ++in_all_;
    return true;
  }
  std::int64_t in_all() const { return in_all_; }

 private:
  std::deque<TimePoint> recent_;
  std::int64_t in_all_ = 0;
};

}  // namespace troupe
