#include "apps/troupe/bench_work.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace troupe::test {
namespace {

using app::arrivals_of;
using app::Load;
using app::prompt_of;

TEST(BenchWork, comes_at_once_unless_a_rate_is_given) {
  EXPECT_EQ(arrivals_of({.sessions = 3}), std::vector<Seconds>(3, Seconds(0)));
}

TEST(BenchWork, comes_at_the_same_times_for_the_same_seed_and_at_others_for_another) {
  const Load load{.sessions = 50, .arrivals_a_second = 4.0, .seed = 7};
  const auto times = arrivals_of(load);
  EXPECT_EQ(times, arrivals_of(load));
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_NE(times, arrivals_of({.sessions = 50, .arrivals_a_second = 4.0, .seed = 8}));
}

// Of a Poisson process the gaps have the mean 1 / rate, and a deviation as large.
TEST(BenchWork, comes_as_a_poisson_process_of_the_rate) {
  const auto times = arrivals_of({.sessions = 20'000, .arrivals_a_second = 5.0, .seed = 3});
  const double mean = times.back().count() / 20'000;
  double squares = 0.0, last = 0.0;
  for (const Seconds time : times) {
    squares += (time.count() - last - mean) * (time.count() - last - mean);
    last = time.count();
  }
  EXPECT_NEAR(mean, 0.2, 0.006);
  EXPECT_NEAR(squares / 20'000, 0.04, 0.003);
}

TEST(BenchWork, gives_every_session_the_shared_tokens_and_then_its_own) {
  const Load load{.prompt = 20, .shared = 8};
  const auto one = prompt_of(0, load, 1000), other = prompt_of(1, load, 1000);
  EXPECT_EQ(one.size(), 20u);
  const auto [at, same] = std::ranges::mismatch(one, other);
  EXPECT_EQ(at - one.begin(), 8);
}

}  // namespace
}  // namespace troupe::test
