// KvCache and KvLease: write, then commit; nobody loses pages, nobody's pages go too early.
#include "runtime/kv/kv_cache.h"

#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/runtime/pool_of.h"

namespace troupe {
namespace {

using test::pool_of;

TEST(KvCache, reserves_whole_pages_all_or_nothing) {
  auto pool = pool_of(4);
  KvCache cache(pool);
  EXPECT_TRUE(cache.reserve(17));
  EXPECT_EQ(cache.capacity(), 32);
  EXPECT_FALSE(cache.reserve(65));
  EXPECT_EQ(cache.capacity(), 32);
  EXPECT_TRUE(cache.reserve(3));  // enough already
  EXPECT_EQ(pool->used(), 2);
}

TEST(KvCache, counts_only_what_was_committed) {
  KvCache cache(pool_of(4));
  ASSERT_TRUE(cache.reserve(40));
  KvLease lease = cache.lend();
  EXPECT_EQ(lease.position(), 0);
  cache.commit(20);
  EXPECT_EQ(cache.length(), 20);
  lease = cache.lend();
  EXPECT_EQ(lease.position(), 20);
  cache.revoke();
  EXPECT_EQ(cache.length(), 20);
  EXPECT_TRUE(lease.revoked());
}

TEST(KvCache, a_lease_keeps_the_pages_of_a_dead_owner) {
  auto pool = pool_of(4);
  KvLease lease;
  {
    KvCache cache(pool);
    ASSERT_TRUE(cache.reserve(32));
    lease = cache.lend();
    EXPECT_FALSE(lease.revoked());
  }
  EXPECT_TRUE(lease.revoked());
  EXPECT_EQ(pool->used(), 2);
  EXPECT_NE(*lease.pages()[1], std::byte{PagePool::kPoison});
  lease = {};
  EXPECT_EQ(pool->used(), 0);
}

TEST(KvCache, goes_on_after_a_revoked_step_while_the_launch_still_holds_its_lease) {
  auto pool = pool_of(4);
  KvCache cache(pool);
  ASSERT_TRUE(cache.reserve(16));
  KvLease stale = cache.lend();
  std::byte* page = stale.pages()[0];
  cache.revoke();
  ASSERT_TRUE(cache.reserve(48));  // the stale lease still reads its own list of one page
  EXPECT_EQ(stale.capacity(), 16);
  KvLease fresh = cache.lend();
  EXPECT_EQ(fresh.capacity(), 48);
  EXPECT_EQ(fresh.pages()[0], page);
  cache.commit(48);
  cache.truncate(0);
  cache.shrink_to_fit(0);
  EXPECT_EQ(pool->used(), 3) << "the leases are out";
  stale = {};
  fresh = {};
  EXPECT_EQ(pool->used(), 0);
}

TEST(KvCache, shrinks_to_what_it_needs_and_never_below_its_length) {
  auto pool = pool_of(8);
  KvCache cache(pool);
  ASSERT_TRUE(cache.reserve(128));
  cache.lend();
  cache.commit(33);
  cache.shrink_to_fit(0);
  EXPECT_EQ(pool->used(), 3);
  cache.truncate(5);
  EXPECT_EQ(cache.length(), 5);
  EXPECT_EQ(pool->used(), 3) << "truncated tokens keep their reservation";
  cache.shrink_to_fit(17);
  EXPECT_EQ(pool->used(), 2);
}

TEST(KvCache, adopts_pages_that_were_taken_for_it) {
  auto pool = pool_of(4);
  KvCache cache(pool);
  {
    PageRun extra(pool);
    ASSERT_TRUE(pool->take(3, extra.ids));
    cache.adopt(extra);
  }
  EXPECT_EQ(cache.capacity(), 48);
  EXPECT_EQ(pool->used(), 3);
  EXPECT_EQ(cache.lend().pages()[2], pool->address(2));
}

TEST(KvCache, refuses_changes_while_it_is_lent) {
  KvCache cache(pool_of(4));
  ASSERT_TRUE(cache.reserve(16));
  const KvLease lease = cache.lend();
  EXPECT_THROW(cache.lend(), std::logic_error);
  EXPECT_THROW((void)cache.reserve(32), std::logic_error);
  EXPECT_THROW(cache.truncate(0), std::logic_error);
  EXPECT_THROW(cache.shrink_to_fit(0), std::logic_error);
  EXPECT_THROW(cache.commit(17), std::logic_error) << "past the pages";
  cache.commit(16);
  EXPECT_THROW(cache.commit(16), std::logic_error) << "nothing is lent any more";
}

TEST(KvCache, moves_with_its_lease) {
  auto pool = pool_of(4);
  std::optional<KvCache> first(std::in_place, pool);
  ASSERT_TRUE(first->reserve(16));
  const KvLease lease = first->lend();
  KvCache second = std::move(*first);
  first.reset();
  EXPECT_FALSE(lease.revoked());
  second.commit(4);
  EXPECT_EQ(second.length(), 4);
}

TEST(KvCache, a_lease_may_be_dropped_on_another_thread) {
  auto pool = pool_of(64);
  for (int i = 0; i < 200; ++i) {
    KvCache cache(pool);
    ASSERT_TRUE(cache.reserve(64));
    std::jthread batcher([lease = cache.lend()]() mutable {
      while (!lease.revoked()) std::this_thread::yield();
      lease = {};
    });
    cache.revoke();
  }
  EXPECT_EQ(pool->used(), 0);
}

}  // namespace
}  // namespace troupe
