// Signals for an interactive program: Ctrl-C stops what a Guard names, once; any other one ends the program with 130,
// as SIGTERM, SIGHUP and SIGQUIT do with 128 + their number. Before it ends so, the terminal gets back the mode that it
// had at the start, and `farewell` (a newline, the end of a colour).
//
// Blocks these signals in every thread and waits for them on one of its own, so that no code runs inside a signal
// handler. Make it before any other thread is started.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace troupe::app {

class Interrupt {
 public:
  explicit Interrupt(std::string farewell = "\n");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // While a Guard lives, the first SIGINT calls `stop` instead of ending the program, and `redraw` is called when the
  // terminal has another size or the program was suspended and goes on. Both on the thread that waits for signals.
  class Guard {
   public:
    Guard(Interrupt& interrupt, std::function<void()> stop, std::function<void()> redraw = {});
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Interrupt& interrupt_;
  };

 private:
  void watch();
  void on_signal(int number);
  [[noreturn]] void leave(int number) const;

  const std::string farewell_;
  std::mutex mutex_;
  std::function<void()> stop_, redraw_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::app
