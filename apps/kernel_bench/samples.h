// Samples: repeated measurements of one rate, and the clocks they are taken with.
//
// A ceiling is what the machine does undisturbed: its best sample. A kernel's rate is what one may count on: its
// median, with the quartiles beside it. On a machine that others use too, two rates may be compared only if their
// samples were taken in turns.
#pragma once

#include <cstddef>
#include <vector>

namespace troupe::kernel_bench {

// Seconds this thread has computed: what others do on the same core does not count (what they do to its caches does).
double thread_seconds();
// Seconds that have passed.
double wall_seconds();

class Samples {
 public:
  void add(double rate) { rates_.push_back(rate); }

  std::size_t count() const { return rates_.size(); }
  // 0 without samples.
  double best() const { return quantile(1.0); }
  double median() const { return quantile(0.5); }
  double low() const { return quantile(0.25); }
  double high() const { return quantile(0.75); }

 private:
  double quantile(double q) const;

  std::vector<double> rates_;
};

}  // namespace troupe::kernel_bench
