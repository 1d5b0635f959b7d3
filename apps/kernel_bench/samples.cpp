#include "apps/kernel_bench/samples.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace troupe::kernel_bench {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double thread_seconds() {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double wall_seconds() {
  return seconds_of(CLOCK_MONOTONIC);
}

double Samples::quantile(double q) const {
  if (rates_.empty()) return 0.0;
  std::vector<double> sorted = rates_;
  std::ranges::sort(sorted);
  return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace troupe::kernel_bench
