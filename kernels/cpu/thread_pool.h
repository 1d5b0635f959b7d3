// ThreadPool: fork-join over a range of units, claimed in chunks from one counter.
//
// The caller takes part. A region ends when every unit is done, not when every worker has been seen: a worker that is
// preempted, or wakes late, holds up only a chunk that it has claimed, and finds nothing to touch afterwards. Workers
// spin for about 50 microseconds after a region (the next one of a decode step comes sooner), then sleep on a futex;
// with fewer processors than threads nobody spins. An exception in a unit is carried to the caller.
// Every thread runs units with the rounding and denormal modes of the contract, whatever the host program set.
// One caller at a time; a body must not call run() of its own pool. run() allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
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

  // chunk of run(): claims start at three quarters of an even share of what is left and shrink to one unit. Long runs
  // of neighbours keep memory streams going, short ones at the end let nobody wait.
  static constexpr std::int64_t kShrinking = 0;

  // Calls body(begin, end) for parts of [0, units), each unit once. chunk: units a claim takes, or kShrinking.
  // units < 2^31. One unit, or one chunk, runs on the caller alone.
  template <class Body>
  void run(std::int64_t units, std::int64_t chunk, Body&& body) {
    const auto call = [](void* data, std::int64_t begin, std::int64_t end) {
      (*static_cast<std::remove_reference_t<Body>*>(data))(begin, end);
    };
    run_region({call, const_cast<void*>(static_cast<const void*>(&body)), units}, chunk);
  }

 private:
  struct Region {
    void (*call)(void*, std::int64_t, std::int64_t) = nullptr;
    void* data = nullptr;
    std::int64_t units = 0;
  };

  void run_region(const Region& region, std::int64_t chunk);
  std::uint32_t claim_and_run();
  void take_part();
  std::uint32_t claim_size(std::uint32_t left) const;
  void run_chunk(std::int64_t begin, std::int64_t end);
  void worker();
  void stop_workers();

  // Each of these groups has cache lines of its own: a line takes 50 to 200 ns from core to core.
  std::vector<std::thread> workers_;
  bool spin_ = true;
  std::atomic<bool> stop_{false};
  // The region: written before claims_ is published; read only by who holds a claim of it, so it never changes under a
  // reader. (chunk_ may be seen a region late: it changes the size of a claim, nothing else.)
  alignas(64) Region region_;
  std::atomic<std::uint32_t> chunk_{1};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  // High half: number of the region; low half: units not yet claimed. One word, so that a claim that succeeds is a
  // claim of the region that its bearer sees.
  alignas(64) std::atomic<std::uint64_t> claims_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};  // units
};

}  // namespace troupe
