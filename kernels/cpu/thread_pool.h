// ThreadPool: fork-join over a range of units.
//
// The caller takes part. Every thread has a share of neighbouring units, which it claims one by one from a counter of
// its own; who is done with his share claims from the others'. (One counter for all cost some 800 cycles more a region
// on two processors 300 cycles apart, where a decode phase takes 25 to 60 thousand. To claim a quarter of what is left
// of a share at a time gained nothing that could be measured.)
//
// A region ends when every unit is done, not when every worker has been seen: a worker that is preempted, or wakes
// late, holds up only a unit that it has claimed, and finds nothing to touch afterwards. Workers spin for 200
// microseconds after a region, then sleep on a futex; with fewer processors than threads nobody spins. The next region
// of a decode step comes sooner than 5; from then on they let other threads have their processor: what happens between
// two launches, which a thread that spins would hold up by tens of microseconds. An exception in a unit is carried to
// the caller; the region's other units run all the same.
//
// Every thread runs units with the rounding and denormal modes of the contract, whatever the host program set.
// One caller at a time; a body must not call run() of its own pool. run() allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace troupe {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) for each i in [0, units) once. units < 2^31. A single unit runs on the caller.
  template <class Body>
  void run(std::int64_t units, Body&& body) {
    const auto call = [](void* data, std::int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(data))(i); };
    run_region({call, const_cast<void*>(static_cast<const void*>(&body))}, units);
  }

 private:
  struct Region {
    void (*call)(void*, std::int64_t) = nullptr;
    void* data = nullptr;
  };
  // A thread's units of the region, with cache lines of its own: a line takes 50 to 200 ns from core to core.
  struct alignas(128) Share {
    // High half: number of the region; low half: units not yet claimed. One word, so that a claim that succeeds is a
    // claim of the region that its bearer sees.
    std::atomic<std::uint64_t> claims{0};
    // Written before claims is published; read only by who holds a claim of it, so they never change under a reader.
    Region region;
    std::int64_t end = 0;
  };

  void run_region(const Region& region, std::int64_t units);
  void publish(const Region& region, std::int64_t units);
  bool claim_and_run(Share& share);
  void take_part(int thread);
  void run_unit(const Region& region, std::int64_t i);
  void worker(int thread);
  std::uint32_t newest_region(int thread) const;
  void await_region(int thread, std::uint32_t seen);
  void stop_workers();

  std::vector<std::thread> workers_;
  std::unique_ptr<Share[]> shares_;  // by thread; the caller's is the first
  bool spin_ = true;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  alignas(128) std::atomic<std::uint32_t> generation_{0};  // number of the newest region; who sleeps, sleeps on it
  alignas(128) std::atomic<std::uint32_t> done_{0};        // units
};

}  // namespace troupe
