#include "apps/kernel_bench/cell.h"

#include <algorithm>
#include <cmath>

namespace troupe::kernel_bench {
namespace {

constexpr int kLeastTurns = 5;
constexpr double kThreadSample = 0.3e-3, kWallSample = 2e-3;  // seconds of one sample, about
constexpr double kMostRuns = 1e4;

}  // namespace

TrialSampler::TrialSampler(MatmulTrial& trial, std::int64_t rows, Clock clock)
    : trial_(trial), rows_(rows), clock_(clock) {
  seconds_of(1);  // the first has cold caches
  const double wanted = clock == Clock::thread ? kThreadSample : kWallSample;
  runs_ = static_cast<int>(std::clamp(std::ceil(wanted / seconds_of(1)), 1.0, kMostRuns));
}

double TrialSampler::seconds_of(int runs) {
  const auto now = clock_ == Clock::thread ? thread_seconds : wall_seconds;
  const double began = now();
  for (int i = 0; i < runs; ++i) trial_.run(rows_);
  return now() - began;
}

double TrialSampler::sample() {
  return runs_ * trial_.multiply_adds(rows_) / seconds_of(runs_);
}

Cell measure(MatmulTrial& trial, const Ceiling& ceiling, const CellPlan& plan) {
  Cell cell;
  cell.weight_bytes_a_multiply_add = trial.weight_bytes() / trial.multiply_adds(plan.rows);
  TrialSampler sampler(trial, plan.rows, plan.clock);
  const double until = wall_seconds() + plan.seconds;
  for (int turn = 0; turn < kLeastTurns || wall_seconds() < until; ++turn) {
    cell.ceiling.add(sample_rate(ceiling, plan.threads));
    cell.kernel.add(sampler.sample());
  }
  return cell;
}

}  // namespace troupe::kernel_bench
