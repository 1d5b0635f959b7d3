// A cell of the table: one format on one path with M rows, measured in turns with its path's ceiling.
#pragma once

#include <cstdint>

#include "apps/kernel_bench/ceiling.h"
#include "apps/kernel_bench/matmul_trial.h"
#include "apps/kernel_bench/samples.h"

namespace troupe::kernel_bench {

// Whose time counts. One thread's own time is blind to what else the machine does; several threads, and waiting for
// memory, need the clock on the wall.
enum class Clock { thread, wall };

// Runs a trial often enough for one sample to be well above the clock's own cost (0.3 microseconds).
class TrialSampler {
 public:
  TrialSampler(MatmulTrial& trial, std::int64_t rows, Clock clock);

  double sample();  // multiply-adds a second

 private:
  double seconds_of(int runs);

  MatmulTrial& trial_;
  std::int64_t rows_;
  Clock clock_;
  int runs_ = 1;
};

struct CellPlan {
  std::int64_t rows = 1;
  int threads = 1;
  Clock clock = Clock::thread;
  double seconds = 0.4;  // to spend; never fewer than 5 turns
};

struct Cell {
  Samples kernel, ceiling;  // multiply-adds a second
  double weight_bytes_a_multiply_add = 0;

  // The two were sampled in the same seconds.
  double share() const { return kernel.median() / ceiling.best(); }
  double weight_rate() const { return kernel.median() * weight_bytes_a_multiply_add; }  // bytes a second
  // Half of the distance between the quartiles, as a part of the median.
  double spread() const { return (kernel.high() - kernel.low()) / 2 / kernel.median(); }
};

Cell measure(MatmulTrial& trial, const Ceiling& ceiling, const CellPlan& plan);

}  // namespace troupe::kernel_bench
