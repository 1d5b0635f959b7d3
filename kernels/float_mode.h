// FloatMode: the contract's floating-point mode (docs/numerics.md, section 1) for the time of a scope.
//
// A host program may have set flush-to-zero or another rounding on its threads; so a thread that computes sets its own
// control word: round to nearest even, denormals kept, no traps. The caller's word comes back at the end.
#pragma once

#include <xmmintrin.h>

namespace troupe {

class FloatMode {
 public:
  FloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kContract); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;
  ~FloatMode() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kContract = 0x1f80;  // all exceptions masked, round to nearest, no FTZ, no DAZ
  unsigned before_;
};

}  // namespace troupe
