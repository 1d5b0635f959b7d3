// Pages that several sequences hold: what one of them does is never seen by another.
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <optional>

#include "runtime/kv/kv_cache.h"
#include "tests/runtime/pool_of.h"
#include "tests/support/promise.h"
#include "tests/support/random.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

using test::pool_of;

constexpr int kPage = KvLayout::kPageTokens;

// A cache whose rows are tags: what a launch would write, two bytes a position.
struct Tagged {
  KvCache cache;
  std::vector<std::uint16_t> tags;  // what the committed positions must hold

  explicit Tagged(const std::shared_ptr<PagePool>& pool) : cache(pool) {}
  Tagged(KvCache branch, std::vector<std::uint16_t> known) : cache(std::move(branch)), tags(std::move(known)) {}

  static std::byte* slot(std::byte* const* pages, std::int64_t position) {
    return pages[position / kPage] + position % kPage * 2;
  }
  static void launch(const KvLease& lease, std::span<const std::uint16_t> rows) {
    lease.copy_shared_page();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(slot(lease.pages(), lease.position() + static_cast<std::int64_t>(i)), &rows[i], 2);
    }
  }
  bool append(std::span<const std::uint16_t> rows) {
    const std::int64_t to = cache.length() + static_cast<std::int64_t>(rows.size());
    if (!cache.reserve(to)) return false;
    launch(cache.lend(), rows);
    cache.commit(to);
    tags.insert(tags.end(), rows.begin(), rows.end());
    return true;
  }
  Tagged fork(std::int64_t length) const {
    return {cache.fork(length), {tags.begin(), tags.begin() + static_cast<std::ptrdiff_t>(length)}};
  }
  void truncate(std::int64_t length) {
    cache.truncate(length);
    tags.resize(static_cast<std::size_t>(length));
  }
  // Looks as a launch would: through a lease. A branch that was not written yet still reads its origin's page.
  bool intact() {
    if (tags.empty()) return true;
    KvCache reader = cache.fork(cache.length());
    if (!reader.reserve(reader.length() + 1)) return true;  // no page for the look
    const KvLease lease = reader.lend();
    lease.copy_shared_page();
    for (std::size_t i = 0; i < tags.size(); ++i) {
      if (std::memcmp(slot(lease.pages(), static_cast<std::int64_t>(i)), &tags[i], 2) != 0) return false;
    }
    return true;
  }
};

std::vector<std::uint16_t> tags(std::size_t count, std::uint16_t from) {
  std::vector<std::uint16_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::uint16_t>(from + i);
  return all;
}

TEST(KvSharing, a_fork_costs_no_page_until_it_goes_on_inside_one) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(21, 100)));
  EXPECT_EQ(pool->used(), 2);
  Tagged branch = origin.fork(21), at_border = origin.fork(16);
  EXPECT_EQ(pool->used(), 2);
  EXPECT_EQ(branch.cache.pages_missing(22), 1) << "its own copy of the second page";
  EXPECT_EQ(branch.cache.pages_missing(21), 0);
  EXPECT_EQ(at_border.cache.pages_missing(17), 1) << "a new page, no copy";
  EXPECT_EQ(origin.cache.pages_missing(22), 0) << "its page is its own to fill";
  ASSERT_TRUE(branch.append(tags(1, 200)));
  ASSERT_TRUE(origin.append(tags(1, 300)));
  EXPECT_EQ(pool->used(), 3);
  EXPECT_TRUE(branch.intact());
  EXPECT_TRUE(origin.intact());
}

TEST(KvSharing, an_origin_that_goes_back_behind_a_branch_leaves_the_branch_its_tokens) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(21, 100)));
  Tagged branch = origin.fork(20);
  origin.truncate(18);
  EXPECT_EQ(origin.cache.pages_missing(19), 1) << "the branch relies on two of the positions to be written";
  ASSERT_TRUE(origin.append(tags(9, 500)));
  EXPECT_TRUE(origin.intact());
  EXPECT_TRUE(branch.intact());
  ASSERT_TRUE(branch.append(tags(30, 700)));
  EXPECT_TRUE(branch.intact());
  EXPECT_TRUE(origin.intact());
}

TEST(KvSharing, a_branch_outlives_its_origin) {
  auto pool = pool_of(8);
  std::optional<Tagged> origin(std::in_place, pool);
  ASSERT_TRUE(origin->append(tags(40, 1)));
  Tagged branch = origin->fork(37);
  origin.reset();
  EXPECT_EQ(pool->used(), 3);
  EXPECT_TRUE(branch.intact());
  ASSERT_TRUE(branch.append(tags(20, 900)));
  EXPECT_TRUE(branch.intact());
}

TEST(KvSharing, a_fork_in_mid_step_has_what_was_committed) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(20, 1)));
  ASSERT_TRUE(origin.cache.reserve(25));
  const KvLease lease = origin.cache.lend();
  Tagged branch = origin.fork(20);
  Tagged::launch(lease, tags(5, 400));
  origin.cache.commit(25);
  ASSERT_TRUE(branch.append(tags(5, 800)));
  EXPECT_TRUE(branch.intact());
}

TEST(KvSharing, a_copy_that_was_not_committed_is_made_again) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(20, 1)));
  Tagged branch = origin.fork(20);
  ASSERT_TRUE(branch.cache.reserve(21));
  branch.cache.lend();  // a step that never ran
  branch.cache.revoke();
  origin.truncate(17);
  ASSERT_TRUE(origin.append(tags(3, 60)));
  Tagged second = branch.fork(20);
  ASSERT_TRUE(branch.append(tags(2, 70)));
  EXPECT_TRUE(branch.intact());
  EXPECT_TRUE(second.intact()) << "forked from a branch that has not got its copy yet";
}

TEST(KvSharing, a_fork_of_a_branch_that_never_ran_reads_what_the_branch_would_have_copied) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(20, 1)));
  std::optional<Tagged> branch(origin.fork(20));
  ASSERT_TRUE(branch->cache.reserve(21));
  Tagged second = branch->fork(19);
  branch.reset();
  EXPECT_TRUE(second.intact());
  ASSERT_TRUE(second.append(tags(9, 70)));
  EXPECT_TRUE(second.intact());
  EXPECT_TRUE(origin.intact());
}

TEST(KvSharing, an_empty_cache_begins_with_full_pages_of_others) {
  auto pool = pool_of(8);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(40, 1)));
  PageRun prefix(pool);
  prefix.ids.assign(origin.cache.full_pages().begin(), origin.cache.full_pages().end());
  ASSERT_EQ(prefix.ids.size(), 2u);
  pool->share(prefix.ids);
  prefix.shared = 2;
  Tagged other(KvCache(pool), tags(32, 1));
  other.cache.begin_with(prefix);
  EXPECT_EQ(other.cache.length(), 32);
  EXPECT_TRUE(prefix.ids.empty());
  other.truncate(30);
  ASSERT_TRUE(other.append(tags(4, 90)));
  EXPECT_TRUE(other.intact());
  EXPECT_TRUE(origin.intact());
}

TEST(KvSharing, writing_without_the_copys_page_is_refused) {
  auto pool = pool_of(2);
  Tagged origin(pool);
  ASSERT_TRUE(origin.append(tags(20, 1)));
  Tagged branch = origin.fork(20);
  EXPECT_FALSE(branch.cache.reserve(21));
  EXPECT_THROW(branch.cache.lend(), std::logic_error);
}

// Forks, goes back, goes on, steps that are withdrawn while their launch still runs: whatever the order, every sequence
// reads what it committed, and in the end no page is left.
TEST(KvSharing, no_order_of_forks_and_returns_changes_anybodys_tokens) {
  test::Random random(11);
  auto pool = pool_of(24);
  std::deque<Tagged> all;
  std::deque<KvLease> late;  // of revoked steps: their launches end before any later one begins
  const auto end_launches = [&] {
    for (const KvLease& lease : late) Tagged::launch(lease, tags(3, 0xeeee));
    late.clear();
  };
  std::uint16_t next = 1;
  const int rounds = test::small_scale() ? 2'000 : 20'000;
  for (int i = 0; i < rounds; ++i) {
    if (all.empty()) all.emplace_back(pool);
    Tagged& one = all[static_cast<std::size_t>(random.below(std::ssize(all)))];
    switch (random.below(7)) {
      case 0:
        all.push_back(one.fork(random.below(one.cache.length() + 1)));
        break;
      case 1:
        one.truncate(random.below(one.cache.length() + 1));
        break;
      case 2:
        if (all.size() > 4) all.erase(all.begin() + random.below(std::ssize(all)));
        break;
      case 3:
        if (one.cache.reserve(one.cache.length() + 3)) late.push_back(one.cache.lend());
        one.cache.revoke();
        break;
      case 4:
        one.cache.shrink_to_fit(one.cache.length());
        break;
      default:
        end_launches();
        one.append(tags(static_cast<std::size_t>(1 + random.below(20)), next));
        next = static_cast<std::uint16_t>(next + 32);
    }
    if (i % 3 != 0) continue;
    end_launches();
    for (Tagged& each : all) ASSERT_TRUE(each.intact()) << "round " << i;
  }
  all.clear();
  late.clear();
  EXPECT_EQ(pool->used(), 0);
  test::promise("N7", test::with_commas(rounds) +
                          " forks, cuts, returns and launches at random on 24 pages: everybody reads what is his");
}

}  // namespace
}  // namespace troupe
