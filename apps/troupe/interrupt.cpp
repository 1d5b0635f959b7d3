#include "apps/troupe/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace troupe::app {
namespace {

constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as a shell reports it

struct Terminal {
  termios settings{};
  bool known = ::tcgetattr(STDIN_FILENO, &settings) == 0;
};

// As it was at the start: the line editor may have it in another mode when the program ends.
const Terminal& terminal_at_start() {
  static const Terminal terminal;
  return terminal;
}

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);  // our own thread's wake-up
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  terminal_at_start();
  const sigset_t set = interrupt_set();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ::pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void Interrupt::watch() {
  const sigset_t set = interrupt_set();
  for (int number = 0; ::sigwait(&set, &number) == 0;) {
    if (number == SIGINT) on_signal();
    const std::lock_guard lock(mutex_);
    if (ending_) return;
  }
}

void Interrupt::on_signal() {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    std::exchange(stop_, nullptr)();
    return;
  }
  const Terminal& terminal = terminal_at_start();
  if (terminal.known) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal.settings);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, "\n", 1);
  ::_exit(kInterruptedExit);
}

Interrupt::Guard::Guard(Interrupt& interrupt, std::function<void()> stop) : interrupt_(interrupt) {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.stop_ = std::move(stop);
}

Interrupt::Guard::~Guard() {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.stop_ = nullptr;
}

}  // namespace troupe::app
