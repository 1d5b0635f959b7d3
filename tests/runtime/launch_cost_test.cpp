#include "runtime/launch_cost.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace troupe {
namespace {

LaunchWork work_at(std::int64_t position, std::int64_t rows) {
  LaunchWork one;
  one.add(position, rows);
  return one;
}

// A machine of 5 ms a launch, 1 ms a row and 0.2 us an attended token, times its slowness.
double true_seconds(const LaunchWork& one, double slowness = 1.0) {
  return slowness * (5e-3 + 1e-3 * static_cast<double>(one.rows) + 2e-7 * one.attended);
}

class Costs : public testing::Test {
 protected:
  void learn(const LaunchWork& one, int times, double slowness = 1.0) {
    for (int i = 0; i < times; ++i) {
      cost_.learn(one, Seconds(true_seconds(one, slowness) * (1.0 + 0.1 * random_.signed_unit())));
    }
  }
  double to_truth(const LaunchWork& one, double slowness = 1.0) const {
    return cost_.of(one).count() / true_seconds(one, slowness);
  }

  test::Random random_{1};
  LaunchCost cost_;
};

TEST_F(Costs, one_position_attends_to_itself_and_all_before_it) {
  EXPECT_EQ(work_at(0, 1).attended, 1.0);
  EXPECT_EQ(work_at(10, 3).attended, 11.0 + 12.0 + 13.0);
}

TEST_F(Costs, a_wide_launch_tells_what_narrow_ones_could_not) {
  learn(work_at(100, 4), 100);
  learn(work_at(0, 60), 2);
  learn(work_at(60, 60), 2);
  EXPECT_NEAR(to_truth(work_at(0, 60)), 1.0, 0.15);
  EXPECT_NEAR(to_truth(work_at(100, 4)), 1.0, 0.15) << "and takes nothing back of what they told";
}

TEST_F(Costs, deep_rows_are_dear) {
  learn(work_at(100, 1), 20);
  for (std::int64_t at = 0; at < 20'000; at += 100) learn(work_at(at, 100), 1);
  EXPECT_NEAR(to_truth(work_at(20'000, 100)), 1.0, 0.1);
  EXPECT_NEAR(to_truth(work_at(0, 100)), 1.0, 0.2);
  EXPECT_LT(cost_.rows_within(Seconds(0.1), 20'000), cost_.rows_within(Seconds(0.1), 0) / 3);
}

TEST_F(Costs, one_disturbed_launch_is_half_believed_at_most) {
  learn(work_at(0, 50), 50);
  const double before = cost_.of(work_at(0, 50)).count();
  cost_.learn(work_at(0, 50), Seconds(30.0));
  EXPECT_LT(cost_.of(work_at(0, 50)).count(), 1.5 * before);
  learn(work_at(0, 50), 12);
  EXPECT_NEAR(to_truth(work_at(0, 50)), 1.0, 0.1);
}

TEST_F(Costs, a_machine_that_stays_slow_is_believed_and_one_that_recovers_too) {
  learn(work_at(0, 50), 50);
  learn(work_at(0, 50), 25, 4.0);
  EXPECT_NEAR(to_truth(work_at(0, 50), 4.0), 1.0, 0.15);
  learn(work_at(0, 50), 25);
  EXPECT_NEAR(to_truth(work_at(0, 50)), 1.0, 0.15);
}

TEST_F(Costs, whatever_was_measured_every_price_stays_above_nothing) {
  for (int i = 0; i < 2000; ++i) {
    const double took = i % 7 == 0 ? 0.0 : (i % 11 == 0 ? 1e4 : 1e-3);
    cost_.learn(work_at(random_.below(30'000), 1 + random_.below(500)), Seconds(took));
    ASSERT_GT(cost_.of(work_at(0, 1)).count(), 0.0);
    ASSERT_GE(cost_.of({}).count(), 0.0);
    ASSERT_GE(cost_.of(work_at(100, 1)), cost_.of(work_at(0, 1)));
    ASSERT_GE(cost_.rows_within(Seconds(0.1), 100), 0);
    ASSERT_EQ(cost_.rows_within(Seconds(-1.0), 0), 0);
  }
}

}  // namespace
}  // namespace troupe
