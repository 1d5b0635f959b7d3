// LaunchCost: how long a launch will take, learnt from those that ran.
//
// The model has three parts: a launch, each row, and each token that a row attends to; the last is what makes rows
// deep in a long prompt dear (behind 4,000 tokens SmolLM2-135M does as much for attention as for all else). A Kalman
// filter follows the three, and how sure it is of each and of their sums: when all launches so far were alike it
// knows the price of those well, and of which part that is not at all, and one launch of another kind then tells. A
// launch that took much longer than the filter thinks possible (another process, a page fault) counts as far as it
// is possible; a machine that stays slow is believed within some launches.
//
// Plain data: time comes in as a parameter.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/time.h"

namespace troupe {

// What a launch computes.
struct LaunchWork {
  std::int64_t rows = 0;
  double attended = 0.0;  // tokens that its rows attend to, summed over rows

  // `count` rows of one sequence, the first with `position` tokens before it.
  void add(std::int64_t position, std::int64_t count) {
    const auto n = static_cast<double>(count);
    rows += count;
    attended += n * (static_cast<double>(position) + (n + 1.0) / 2.0);
  }
};

class LaunchCost {
 public:
  void learn(const LaunchWork& work, Seconds took);
  Seconds of(const LaunchWork& work) const;
  // In rows that attend to nothing: what keys are charged.
  double rows_worth(const LaunchWork& work) const;
  // How many rows behind `position` tokens one more launch part of `budget` holds, to the nearest; 0 if not one.
  std::int64_t rows_within(Seconds budget, std::int64_t position) const;

 private:
  using Parts = std::array<double, 3>;  // launch, row, attended token
  using Square = std::array<Parts, 3>;
  void begin(const LaunchWork& work, double seconds);
  void drift();
  Parts scale() const;

  // Before the first launch: a slow machine's row.
  Parts seconds_{0.0, 2e-3, 0.0};
  Square covariance_{};
  bool knows_ = false;
};

}  // namespace troupe
