// Ctrl-C for an interactive program: the first during an answer stops it, any other ends the program.
//
// Blocks SIGINT in every thread and waits for it on one of its own, so that no code runs inside a signal handler.
// Make it before any other thread is started.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace troupe::app {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // While a Guard lives, the first SIGINT calls `stop` instead of ending the program.
  class Guard {
   public:
    Guard(Interrupt& interrupt, std::function<void()> stop);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Interrupt& interrupt_;
  };

 private:
  void watch();
  void on_signal();

  std::mutex mutex_;
  std::function<void()> stop_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::app
