// sole_owner: what a reader did with a lent object is over before its owner changes it. The thread sanitizer is the
// judge here: with a bare use_count() it reports a race on every one of these objects.
#include "runtime/sole_owner.h"

#include <gtest/gtest.h>
#include <thread>

#include "runtime/kv/kv_cache.h"
#include "tests/runtime/pool_of.h"

namespace troupe {
namespace {

TEST(SoleOwner, knows_its_guests) {
  EXPECT_FALSE(sole_owner(std::shared_ptr<int>()));
  const auto owner = std::make_shared<int>(1);
  EXPECT_TRUE(sole_owner(owner));
  auto guest = owner;
  EXPECT_FALSE(sole_owner(owner));
  guest.reset();
  EXPECT_TRUE(sole_owner(owner));
  EXPECT_EQ(owner.use_count(), 1) << "looking costs no hold";
}

TEST(SoleOwner, changes_only_what_its_reader_has_left) {
  for (int round = 0; round < 100; ++round) {
    const auto owner = std::make_shared<int>(round);
    int seen = -1;
    std::jthread reader([guest = std::shared_ptr<const int>(owner), &seen]() mutable {
      seen = *guest;
      guest.reset();
    });
    while (!sole_owner(owner)) std::this_thread::yield();
    EXPECT_EQ(seen, round);
    *owner = -2;
  }
}

TEST(SoleOwner, a_cache_gives_pages_back_only_after_a_revoked_launch_has_read_them) {
  auto pool = test::pool_of(4);
  for (int round = 0; round < 100; ++round) {
    KvCache cache(pool);
    ASSERT_TRUE(cache.reserve(32));
    std::byte seen{};
    std::atomic<bool> left = false;
    std::jthread launch([lease = cache.lend(), &seen, &left]() mutable {
      seen = *lease.pages()[1];
      lease = {};
      left.store(true, std::memory_order_relaxed);  // tells the time, orders nothing
    });
    cache.revoke();
    while (!left.load(std::memory_order_relaxed)) std::this_thread::yield();
    cache.shrink_to_fit(0);
    EXPECT_EQ(pool->used(), 0);
    EXPECT_EQ(*pool->address(1), std::byte{PagePool::kPoison});
  }
}

}  // namespace
}  // namespace troupe
