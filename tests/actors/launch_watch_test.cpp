#include "actors/launch_watch.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Watched {
  LaunchWatch watch{seconds(60), milliseconds(250)};
  LaunchWatch::Clock::time_point now{seconds(1000)};
  // Ticks for so long; whether the launch hangs at the end.
  bool after(LaunchWatch::Clock::duration time, std::int64_t launch) {
    bool hangs = false;
    for (const auto end = now + time; now < end;) hangs = watch.hangs(now += milliseconds(250), launch);
    return hangs;
  }
};

TEST(LaunchWatch, a_launch_that_ticks_see_for_longer_than_the_limit_hangs) {
  Watched watched;
  EXPECT_FALSE(watched.after(seconds(60), 7));
  EXPECT_TRUE(watched.after(seconds(1), 7));
  EXPECT_FALSE(watched.after(seconds(1), 0)) << "it has ended";
}

TEST(LaunchWatch, launches_that_follow_each_other_are_not_one) {
  Watched watched;
  for (int launch = 1; launch < 10; ++launch) EXPECT_FALSE(watched.after(seconds(40), launch));
}

TEST(LaunchWatch, between_launches_nothing_hangs) {
  Watched watched;
  EXPECT_FALSE(watched.after(seconds(600), 0));
}

TEST(LaunchWatch, an_hour_in_which_the_process_stood_still_is_nobodys_fault) {
  Watched watched;
  EXPECT_FALSE(watched.after(seconds(1), 7));
  watched.now += std::chrono::hours(1);
  EXPECT_FALSE(watched.after(seconds(50), 7));
  EXPECT_TRUE(watched.after(seconds(10), 7)) << "but the time it does run counts";
}

}  // namespace
}  // namespace troupe
