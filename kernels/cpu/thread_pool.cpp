#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <immintrin.h>
#include <sched.h>
#include <utility>

#include "kernels/check.h"
#include "kernels/float_mode.h"

namespace troupe {
namespace {

constexpr auto kSpin = std::chrono::microseconds(200);
constexpr auto kSelfish = std::chrono::microseconds(5);  // the next region of a launch comes sooner
constexpr int kPausesBetweenLooks = 32;                  // a look at the clock costs some 25 ns

// Spins until `done`, for kSpin at most, and soon lets others have the processor meanwhile.
template <class Done>
bool spin_until(Done&& done) {
  const auto began = std::chrono::steady_clock::now();
  for (auto now = began; now < began + kSpin; now = std::chrono::steady_clock::now()) {
    if (now > began + kSelfish) ::sched_yield();
    for (int i = 0; i < kPausesBetweenLooks; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  }
  return false;
}

// Whether this process may use so many processors at once. More than 1024 of them fail the call: enough then.
bool enough_processors(int threads) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) >= threads;
}

std::uint32_t unclaimed(std::uint64_t claims) {
  return static_cast<std::uint32_t>(claims);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : spin_(enough_processors(threads)) {
  TROUPE_CHECK(threads >= 1);
  shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker(i); });
  } catch (...) {
    stop_workers();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop_workers();
}

void ThreadPool::stop_workers() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::run_region(const Region& region, std::int64_t units) {
  if (units <= 0) return;
  const FloatMode mode;
  if (workers_.empty() || units == 1) {
    for (std::int64_t i = 0; i < units; ++i) region.call(region.data, i);
    return;
  }
  TROUPE_CHECK(units < std::int64_t{1} << 31);
  publish(region, units);
  take_part(0);
  const auto all = static_cast<std::uint32_t>(units);
  const auto ended = [&] { return done_.load(std::memory_order_acquire) == all; };
  if (!(spin_ && spin_until(ended))) {
    for (std::uint32_t done = done_.load(); done != all; done = done_.load()) done_.wait(done);
  }
  if (failed_.exchange(false, std::memory_order_relaxed)) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::publish(const Region& region, std::int64_t units) {
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = generation_.load(std::memory_order_relaxed) + std::uint32_t{1};
  std::int64_t end = 0;
  for (int i = 0; i < threads(); ++i) {
    const std::int64_t begin = std::exchange(end, units * (i + 1) / threads());
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.region = region;
    share.end = end;
    share.claims.store(number << 32 | static_cast<std::uint64_t>(end - begin), std::memory_order_release);
  }
  generation_.store(static_cast<std::uint32_t>(number), std::memory_order_release);
  generation_.notify_all();
}

// False when nothing of it is left to claim.
bool ThreadPool::claim_and_run(Share& share) {
  std::uint64_t claims = share.claims.load(std::memory_order_acquire);
  do {
    if (unclaimed(claims) == 0) return false;
  } while (
      !share.claims.compare_exchange_weak(claims, claims - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  // The region cannot end before this claim is done.
  run_unit(share.region, share.end - unclaimed(claims));
  return true;
}

// The region cannot end before this thread has told what it did, so it tells once, at the end.
void ThreadPool::take_part(int thread) {
  std::uint32_t mine = 0;
  for (int i = 0; i < threads(); ++i) {
    Share& share = shares_[static_cast<std::size_t>((thread + i) % threads())];
    while (claim_and_run(share)) ++mine;
  }
  if (mine == 0) return;
  done_.fetch_add(mine, std::memory_order_acq_rel);
  done_.notify_one();
}

// The first error stands. done_ orders error_ before the caller reads it.
void ThreadPool::run_unit(const Region& region, std::int64_t i) {
  try {
    region.call(region.data, i);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
  }
}

// The number of the newest region that the thread has a share of.
std::uint32_t ThreadPool::newest_region(int thread) const {
  return static_cast<std::uint32_t>(shares_[static_cast<std::size_t>(thread)].claims.load(std::memory_order_acquire) >>
                                    32);
}

// A region's shares are published before generation_ tells of it.
void ThreadPool::await_region(int thread, std::uint32_t seen) {
  if (spin_ && spin_until([&] { return newest_region(thread) != seen; })) return;
  while (true) {
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    if (stop_ || newest_region(thread) != seen) return;
    generation_.wait(generation, std::memory_order_acquire);
  }
}

void ThreadPool::worker(int thread) {
  const FloatMode mode;
  std::uint32_t seen = 0;
  while (!stop_) {
    await_region(thread, seen);
    seen = newest_region(thread);
    take_part(thread);
  }
}

}  // namespace troupe
