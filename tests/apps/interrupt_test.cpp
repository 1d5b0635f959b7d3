// Signals, to the class that takes them: each test in a process of its own, which says how it was ended.
#include "apps/troupe/interrupt.h"

#include <csignal>
#include <future>
#include <gtest/gtest.h>
#include <unistd.h>

namespace troupe::test {
namespace {

using app::Interrupt;

class Interrupts : public testing::Test {
 protected:
  Interrupts() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

// Waits until the process is ended from elsewhere; one that is not ends by the alarm.
[[noreturn]] void wait_to_be_ended() {
  ::alarm(60);
  for (;;) ::pause();
}

TEST_F(Interrupts, stop_once_what_a_guard_names_and_then_end_the_program) {
  const auto interrupt_twice = [] {
    Interrupt interrupt;
    std::promise<void> stopped;
    const Interrupt::Guard guard(interrupt, [&] { stopped.set_value(); });
    ::kill(::getpid(), SIGINT);
    stopped.get_future().wait();
    ::kill(::getpid(), SIGINT);
    wait_to_be_ended();
  };
  EXPECT_EXIT(interrupt_twice(), testing::ExitedWithCode(130), "");
}

TEST_F(Interrupts, end_the_program_when_there_is_nothing_to_stop) {
  const auto interrupt_after_a_guard = [] {
    Interrupt interrupt;
    {
      const Interrupt::Guard guard(interrupt, [] { ::_exit(1); });
    }
    ::kill(::getpid(), SIGINT);
    wait_to_be_ended();
  };
  EXPECT_EXIT(interrupt_after_a_guard(), testing::ExitedWithCode(130), "");
}

TEST_F(Interrupts, leave_a_program_alone_that_was_told_to_outlive_its_terminal) {
  const auto hang_up = [] {
    std::signal(SIGHUP, SIG_IGN);  // as nohup does
    Interrupt interrupt;
    ::kill(::getpid(), SIGHUP);
    ::kill(::getpid(), SIGTERM);
    wait_to_be_ended();
  };
  EXPECT_EXIT(hang_up(), testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace troupe::test
