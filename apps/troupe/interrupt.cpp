#include "apps/troupe/interrupt.h"

#include <csignal>
#include <pthread.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace troupe::app {
namespace {

struct Terminal {
  termios settings{};
  bool known = ::tcgetattr(STDIN_FILENO, &settings) == 0;
};

// As it was at the start: the line editor may have it in another mode when the program ends.
const Terminal& terminal_at_start() {
  static const Terminal terminal;
  return terminal;
}

// A program that was started to outlive its terminal (nohup) ignores SIGHUP and must go on doing so.
bool hangup_is_ignored() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGQUIT, SIGWINCH, SIGCONT}) sigaddset(&set, number);
  if (!hangup_is_ignored()) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);  // our own thread's wake-up
  return set;
}

}  // namespace

Interrupt::Interrupt(std::string farewell) : farewell_(std::move(farewell)) {
  terminal_at_start();
  const sigset_t set = watched_signals();
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
  const sigset_t set = watched_signals();
  for (int number = 0; ::sigwait(&set, &number) == 0;) {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    on_signal(number);
  }
}

void Interrupt::on_signal(int number) {
  if (number == SIGUSR1) return;
  if (number == SIGWINCH || number == SIGCONT) {
    if (redraw_) redraw_();
  } else if (number == SIGINT && stop_) {
    std::exchange(stop_, nullptr)();
  } else {
    leave(number);
  }
}

void Interrupt::leave(int number) const {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTTOU);  // in the background, setting the terminal would suspend the program
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const Terminal& terminal = terminal_at_start();
  if (terminal.known) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal.settings);
  if (::isatty(STDOUT_FILENO) != 0) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, farewell_.data(), farewell_.size());
  }
  ::_exit(128 + number);  // as a shell reports it
}

Interrupt::Guard::Guard(Interrupt& interrupt, std::function<void()> stop, std::function<void()> redraw)
    : interrupt_(interrupt) {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.stop_ = std::move(stop);
  interrupt_.redraw_ = std::move(redraw);
}

Interrupt::Guard::~Guard() {
  const std::lock_guard lock(interrupt_.mutex_);
  interrupt_.stop_ = interrupt_.redraw_ = nullptr;
}

}  // namespace troupe::app
