#include "kernels/cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
#include <vector>
#include <xmmintrin.h>

namespace troupe {
namespace {

TEST(ThreadPool, does_every_unit_once_whatever_the_number_of_threads) {
  for (int threads : {1, 2, 3, 9}) {
    ThreadPool pool(threads);
    for (std::int64_t units : {0, 1, 2, 7, 64, 1001}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(units));
      pool.run(units, [&](std::int64_t i) { seen[static_cast<std::size_t>(i)].fetch_add(1); });
      for (const std::atomic<int>& times : seen) ASSERT_EQ(times.load(), 1);
    }
  }
}

// The caller's plain writes before a region and the units' plain writes in it need no atomics: under the thread
// sanitizer this shows that a region's start and end order them.
TEST(ThreadPool, orders_what_units_write_before_what_the_caller_reads) {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(64);
  for (std::int64_t round = 0; round < 3000; ++round) {
    std::int64_t add = round;
    pool.run(64, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] += add; });
    add = -1;
  }
  for (std::int64_t value : values) ASSERT_EQ(value, 3000 * 2999 / 2);
}

TEST(ThreadPool, carries_the_first_exception_to_the_caller_and_works_on) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(pool.run(40,
                            [](std::int64_t i) {
                              if (i % 5 == 0) throw std::runtime_error("unit");
                            }),
                   std::runtime_error);
      std::atomic<int> done = 0;
      pool.run(40, [&](std::int64_t) { ++done; });
      ASSERT_EQ(done.load(), 40);
    }
  }
}

// The first unit ends only when the others are done, those of its thread's share too: somebody else claims them.
TEST(ThreadPool, a_held_up_thread_holds_up_only_what_it_has_claimed) {
  ThreadPool pool(2);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<int> others = 0;
  pool.run(200, [&](std::int64_t i) {
    if (i != 0) {
      ++others;
      return;
    }
    while (others.load() < 199 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(others.load(), 199);
  });
}

TEST(ThreadPool, wakes_workers_that_have_gone_to_sleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // well past the time that workers spin
    std::atomic<int> here = 0;
    // Both units wait for each other: they end only if two threads take part.
    pool.run(2, [&](std::int64_t) {
      ++here;
      while (here.load() < 2) std::this_thread::yield();
    });
    ASSERT_EQ(here.load(), 2);
  }
}

TEST(ThreadPool, many_more_threads_than_processors_still_finish) {
  ThreadPool pool(64);
  std::atomic<std::int64_t> sum = 0;
  for (int round = 0; round < 200; ++round) {
    pool.run(100, [&](std::int64_t i) { sum += i; });
  }
  EXPECT_EQ(sum.load(), 200 * 4950);
}

// A host program that flushes denormals must not change a result, and must get its mode back.
TEST(ThreadPool, computes_with_denormals_and_puts_the_hosts_mode_back) {
  constexpr unsigned kFlush = 0x8040, kHost = 0x1f80 | kFlush;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kHost);
  ThreadPool pool(3);
  std::atomic<int> flushed = 0;
  for (int round = 0; round < 50; ++round) {
    pool.run(30, [&](std::int64_t) { flushed += (_mm_getcsr() & kFlush) != 0; });
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(flushed.load(), 0);
  EXPECT_EQ(after & kHost, kHost);
}

}  // namespace
}  // namespace troupe
