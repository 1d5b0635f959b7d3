// PagePool: counts that add up under anything, all or nothing, poison, threads.
#include "runtime/kv/page_pool.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

#include "tests/support/promise.h"
#include "tests/support/random.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

const KvLayout kLayout{1, 1, 16, KvType::f16};

PagePool bare_pool(std::int64_t pages, bool poison = false) {
  return PagePool(allocate_host(static_cast<std::size_t>(pages) * kLayout.page_bytes()), kLayout, pages, poison);
}

// A model of the pool: who holds how many references to which page.
struct Holder {
  std::vector<PageId> pages;
};

TEST(PagePool, counts_add_up_over_a_million_random_operations) {
  constexpr std::int64_t kPages = 97;
  PagePool pool = bare_pool(kPages);
  test::Random random(1);
  std::vector<Holder> holders;
  std::vector<int> references(kPages, 0);
  const int operations = test::small_scale() ? 100'000 : 1'000'000;
  for (int i = 0; i < operations; ++i) {
    const std::int64_t used = kPages - std::ranges::count(references, 0);
    ASSERT_EQ(pool.used(), used);
    ASSERT_EQ(pool.free() + pool.used(), pool.total());
    const std::int64_t choice = random.below(4);
    if (choice <= 1) {
      const std::int64_t count = random.below(12);
      Holder holder;
      ASSERT_EQ(pool.take(count, holder.pages), count <= kPages - used);
      for (PageId page : holder.pages) ASSERT_EQ(references[static_cast<std::size_t>(page)]++, 0) << "given out twice";
      holders.push_back(holder);
    } else if (choice == 2 && !holders.empty()) {
      const Holder copy = holders[static_cast<std::size_t>(random.below(std::ssize(holders)))];
      pool.retain(copy.pages);
      for (PageId page : copy.pages) ++references[static_cast<std::size_t>(page)];
      holders.push_back(copy);
    } else if (!holders.empty()) {
      std::swap(holders[static_cast<std::size_t>(random.below(std::ssize(holders)))], holders.back());
      pool.release(holders.back().pages);
      for (PageId page : holders.back().pages) --references[static_cast<std::size_t>(page)];
      holders.pop_back();
    }
  }
  for (const Holder& holder : holders) pool.release(holder.pages);
  test::promise("C14", test::with_commas(operations) + " random operations, used + free = total after each");
  EXPECT_EQ(pool.free(), kPages);
}

TEST(PagePool, gives_all_or_nothing) {
  PagePool pool = bare_pool(4);
  std::vector<PageId> pages;
  EXPECT_FALSE(pool.take(5, pages));
  EXPECT_TRUE(pages.empty());
  EXPECT_TRUE(pool.take(4, pages));
  EXPECT_FALSE(pool.take(1, pages));
  EXPECT_EQ(pages.size(), 4u);
  pool.release(pages);
}

TEST(PagePool, pages_do_not_overlap_and_are_aligned) {
  PagePool pool = bare_pool(8);
  for (PageId page = 0; page < 8; ++page) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.address(page)) % 64, 0u);
    EXPECT_EQ(pool.address(page) - pool.address(0), page * static_cast<std::ptrdiff_t>(kLayout.page_bytes()));
  }
}

TEST(PagePool, poisons_a_page_with_its_last_reference_only) {
  PagePool pool = bare_pool(2, true);
  std::vector<PageId> pages;
  ASSERT_TRUE(pool.take(1, pages));
  std::byte* first = pool.address(pages[0]);
  *first = std::byte{7};
  pool.retain(pages);
  pool.release(pages);
  EXPECT_EQ(*first, std::byte{7});
  pool.release(pages);
  EXPECT_TRUE(
      std::all_of(first, first + kLayout.page_bytes(), [](std::byte b) { return b == std::byte{PagePool::kPoison}; }));
}

TEST(PagePool, releasing_what_nobody_holds_is_a_broken_promise) {
  PagePool pool = bare_pool(2);
  const PageId page = 1;
  EXPECT_THROW(pool.release({&page, 1}), std::logic_error);
  EXPECT_THROW(pool.retain({&page, 1}), std::logic_error);
}

TEST(PagePool, serves_many_threads_at_once) {
  constexpr std::int64_t kPages = 64;
  PagePool pool = bare_pool(kPages, true);
  const int rounds = test::small_scale() ? 2'000 : 20'000;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&pool, rounds, t] {
        test::Random random(t);
        for (int i = 0; i < rounds; ++i) {
          std::vector<PageId> pages;
          if (!pool.take(1 + random.below(8), pages)) continue;
          // Written while held: a page with two owners shows under the thread sanitizer.
          for (PageId page : pages) *pool.address(page) = static_cast<std::byte>(t);
          pool.retain(pages);
          pool.release(pages);
          for (PageId page : pages) EXPECT_EQ(*pool.address(page), static_cast<std::byte>(t));
          pool.release(pages);
        }
      });
    }
  }
  EXPECT_EQ(pool.free(), kPages);
}

}  // namespace
}  // namespace troupe
