// Meter: what one parsing or rendering may still use. Everything that could grow asks it first.
//
// Memory is counted as it is taken and never given back: a rendering's objects live until its end (heap.h). Work on
// bytes counts as steps too (64 bytes a step), so that the steps bound the time.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "runtime/text/jinja/failure.h"

namespace troupe::jinja {

class Meter {
 public:
  // Python's own limit of recursion. One level costs about 1 KiB of stack, 3 KiB under the sanitizers.
  static constexpr int kMaxNesting = 1000;

  Meter(std::size_t steps, std::size_t memory_bytes, int call_depth)
      : steps_(steps), memory_(memory_bytes), calls_(call_depth), step_limit_(steps), memory_limit_(memory_bytes) {}

  static Meter unlimited_steps(std::size_t memory_bytes) {
    return Meter(std::numeric_limits<std::size_t>::max(), memory_bytes, 0);
  }

  void step(std::size_t count = 1) {
    if (count > steps_) over("takes more than " + std::to_string(step_limit_) + " steps");
    steps_ -= count;
  }
  void take(std::size_t bytes) {
    if (bytes > memory_) over("needs more than " + std::to_string(memory_limit_) + " bytes of memory");
    memory_ -= bytes;
    unstepped_ += bytes + kEachTake;
    step(unstepped_ / kBytesAStep);
    unstepped_ %= kBytesAStep;
  }
  void take(std::size_t count, std::size_t bytes_each) {
    take(count > memory_ ? std::numeric_limits<std::size_t>::max() : count * bytes_each);
  }

  void enter() {
    if (nesting_ >= kMaxNesting) over("is nested more than " + std::to_string(kMaxNesting) + " levels deep");
    ++nesting_;
  }
  void leave() { --nesting_; }
  void enter_call() {
    if (calls_ <= 0) over("calls macros within macros deeper than allowed");
    --calls_;
  }
  void leave_call() { ++calls_; }

 private:
  static constexpr std::size_t kBytesAStep = 64;
  static constexpr std::size_t kEachTake = 4;  // strings built byte by byte cost time too

  [[noreturn]] static void over(const std::string& what) { throw Failure(Failure::Kind::budget, "it " + what); }

  std::size_t steps_, memory_;
  std::size_t unstepped_ = 0;  // bytes that are no whole step yet
  int calls_;
  int nesting_ = 0;
  std::size_t step_limit_, memory_limit_;
};

// One level of recursion, for as long as it lives.
class Nested {
 public:
  explicit Nested(Meter& meter) : meter_(meter) { meter_.enter(); }
  ~Nested() { meter_.leave(); }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Meter& meter_;
};

// One call of a macro, a call block or a recursive loop, for as long as it lives.
class Called {
 public:
  explicit Called(Meter& meter) : meter_(meter) { meter_.enter_call(); }
  ~Called() { meter_.leave_call(); }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;

 private:
  Meter& meter_;
};

}  // namespace troupe::jinja
