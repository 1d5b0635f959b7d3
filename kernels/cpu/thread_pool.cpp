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

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesBetweenLooks = 32;  // a look at the clock costs some 25 ns

// Waits until `value` differs from `old`: spins first if it may, then sleeps.
void wait_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, bool spin) {
  if (spin) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < kPausesBetweenLooks; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        _mm_pause();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
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
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
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

void ThreadPool::run_region(const Region& region, std::int64_t chunk) {
  if (region.units <= 0) return;
  const FloatMode mode;
  if (workers_.empty() || region.units <= std::max<std::int64_t>(chunk, 1)) {
    region.call(region.data, 0, region.units);
    return;
  }
  TROUPE_CHECK(region.units < std::int64_t{1} << 31);
  region_ = region;
  chunk_.store(static_cast<std::uint32_t>(chunk), std::memory_order_relaxed);
  const auto units = static_cast<std::uint32_t>(region.units);
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = generation_.load(std::memory_order_relaxed) + std::uint64_t{1};
  claims_.store(number << 32 | units, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_part();
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != units;
       done = done_.load(std::memory_order_acquire)) {
    wait_change(done_, done, spin_);
  }
  if (failed_.exchange(false, std::memory_order_relaxed)) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::uint32_t ThreadPool::claim_size(std::uint32_t left) const {
  const std::uint32_t fixed = chunk_.load(std::memory_order_relaxed);
  const auto share = static_cast<std::uint32_t>(std::uint64_t{3} * left / (4 * static_cast<std::uint64_t>(threads())));
  return std::max(1u, std::min(left, fixed > 0 ? fixed : share));
}

// Units computed; 0 when none is left to claim.
std::uint32_t ThreadPool::claim_and_run() {
  std::uint64_t claims = claims_.load(std::memory_order_acquire);
  std::uint32_t size = 0;
  do {
    if (unclaimed(claims) == 0) return 0;
    size = claim_size(unclaimed(claims));
  } while (!claims_.compare_exchange_weak(claims, claims - size, std::memory_order_acq_rel, std::memory_order_acquire));
  // The region cannot end before this claim is done.
  const std::int64_t begin = region_.units - unclaimed(claims);
  run_chunk(begin, begin + size);
  return size;
}

// The region cannot end before this thread has told what it did, so it tells once, at the end.
void ThreadPool::take_part() {
  std::uint32_t mine = 0;
  while (const std::uint32_t size = claim_and_run()) mine += size;
  if (mine == 0) return;
  done_.fetch_add(mine, std::memory_order_acq_rel);
  done_.notify_one();
}

// The first error stands; the region's other chunks run all the same. done_ orders error_ before the caller reads it.
void ThreadPool::run_chunk(std::int64_t begin, std::int64_t end) {
  try {
    region_.call(region_.data, begin, end);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
  }
}

void ThreadPool::worker() {
  const FloatMode mode;
  std::uint32_t seen = 0;
  while (!stop_) {
    take_part();
    wait_change(generation_, seen, spin_);
    seen = generation_.load(std::memory_order_acquire);
  }
}

}  // namespace troupe
