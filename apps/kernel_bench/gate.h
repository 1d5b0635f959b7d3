// The kernel gate: whether the Q4_0 kernel is as near to the machine's ceiling as it was built to be.
//
// The one timed test of the project. It compares two rates of one thread taken in turns in the same run, both by the
// thread's own time and both the best of many short samples, so that a busy machine slows the gate down and does not
// change its answer; a ratio below the failing limit is measured again with more samples before it counts.
#pragma once

namespace troupe::kernel_bench {

struct GateLimits {
  double warn_below = 0;
  double fail_below = 0;
};

// Kernel by its instruction's ceiling; AMX kernel by VNNI kernel.
constexpr GateLimits kCeilingLimits{0.65, 0.45};
constexpr GateLimits kAmxLimits{1.3, 1.0};

enum class Verdict { passed, warned, failed };
Verdict judge(double ratio, const GateLimits& limits);

// Prints every ratio on stdout and what is wrong on stderr. False when a ratio fails; a processor without the
// instructions passes and is told so.
bool run_gate();

}  // namespace troupe::kernel_bench
