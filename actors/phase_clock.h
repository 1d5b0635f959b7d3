// PhaseClock: which phase a session is in, and how long it has been in each. The times add up to its age exactly.
#pragma once

#include "actors/records.h"

namespace troupe {

class PhaseClock {
 public:
  explicit PhaseClock(TimePoint now) : since_(now) {}

  SessionPhase phase() const { return phase_; }
  // `asleep`: of an idle session that has no pages.
  void enter(SessionPhase phase, TimePoint now, bool asleep = false) {
    if (phase == phase_ && asleep == asleep_) return;  // as with every token but the first
    times_ = times(now);
    since_ = now;
    phase_ = phase;
    asleep_ = asleep;
  }
  PhaseTimes times(TimePoint now) const {
    PhaseTimes times = times_;
    (asleep_ ? times.asleep : times.of(phase_)) += now - since_;
    return times;
  }

 private:
  PhaseTimes times_;
  TimePoint since_;
  SessionPhase phase_ = SessionPhase::idle;
  bool asleep_ = false;
};

}  // namespace troupe
