// SleepRoom: what sleeps comes back as the same bytes, in memory or on the disk; what cannot be kept is said to be
// lost.
#include "runtime/kv/sleep_room.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "runtime/kv/token_row.h"
#include "tests/runtime/pool_of.h"
#include "tests/support/scratch_folder.h"

namespace troupe {
namespace {

using test::pool_of;

// Pages of one pool that tests write recognisable bytes into.
class Sleepers {
 public:
  explicit Sleepers(SleepOptions options, std::int64_t pages = 64)
      : pool_(pool_of(pages)), room_(*SleepRoom::open(options, *pool_)) {}

  static std::byte tag(int which, std::int64_t page) {
    return static_cast<std::byte>(17 * which + 31 * static_cast<int>(page) + 1);
  }
  std::size_t page_bytes() const { return pool_->layout().page_bytes(); }

  KvCache computed(int which, std::int64_t tokens) {
    KvCache cache(pool_);
    EXPECT_TRUE(cache.reserve(tokens));
    const KvLease lease = cache.lend();
    for (std::int64_t i = 0; i < pages_for(tokens); ++i) {
      std::memset(lease.pages()[i], std::to_integer<int>(tag(which, i)), page_bytes());
    }
    cache.commit(tokens);
    return cache;
  }
  KvCache asleep(int which, std::int64_t tokens) {
    KvCache cache = computed(which, tokens);
    auto copy = room_->put(cache);
    if (!copy) throw std::runtime_error(copy.error().message);
    cache.fall_asleep(std::move(*copy));
    return cache;
  }
  bool is(const KvCache& cache, int which) const {
    std::vector<std::byte> row(TokenRow::bytes(pool_->layout()));
    for (std::int64_t at = 0; at < cache.length(); ++at) {
      const std::int64_t page = at / KvLayout::kPageTokens;
      TokenRow(pool_->layout(), 0, static_cast<int>(at % KvLayout::kPageTokens)).read(cache.pages()[page], row.data());
      if (std::ranges::count(row, tag(which, page)) != std::ssize(row)) return false;
    }
    return true;
  }
  Result<void> wake(KvCache& cache) {
    EXPECT_TRUE(cache.reserve(cache.length()));
    return room_->wake(cache);
  }
  PagePool& pool() { return *pool_; }
  SleepRoom& room() { return *room_; }

 private:
  std::shared_ptr<PagePool> pool_;
  std::shared_ptr<SleepRoom> room_;
};

SleepOptions memory_of(std::uint64_t bytes) {
  return {.memory = bytes};
}

SleepOptions disk_in(const ScratchFolder& folder, std::uint64_t memory = 0, std::uint64_t disk = 1 << 20) {
  return {.memory = memory, .folder = folder.path(), .disk = disk};
}

// The room's file has no name; the process's list of open files still knows it.
int nameless_file_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder)) return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST(SleepRoom, gives_pages_back_and_wakes_the_same_bytes) {
  Sleepers lab(memory_of(1 << 20));
  KvCache cache = lab.asleep(1, 40);
  EXPECT_TRUE(cache.asleep());
  EXPECT_EQ(cache.length(), 40);
  EXPECT_EQ(cache.capacity(), 0);
  EXPECT_EQ(lab.pool().used(), 0);
  EXPECT_EQ(lab.room().counters().in_memory, 1);
  EXPECT_EQ(lab.room().counters().memory_bytes, 3 * lab.page_bytes());
  const KvCache other = lab.computed(2, 20);  // wakes in other pages
  EXPECT_EQ(cache.pages_missing(50), 4);
  ASSERT_TRUE(lab.wake(cache));
  EXPECT_FALSE(cache.asleep());
  EXPECT_TRUE(lab.is(cache, 1));
  EXPECT_TRUE(lab.is(other, 2));
  EXPECT_EQ(lab.room().counters().in_memory, 0);
  EXPECT_EQ(lab.room().counters().memory_bytes, 0u);
  EXPECT_EQ(lab.room().counters().woken, 1u);
}

TEST(SleepRoom, wakes_from_a_disk_that_shows_no_file) {
  const ScratchFolder folder;
  Sleepers lab(disk_in(folder));
  KvCache one = lab.asleep(1, 33), two = lab.asleep(2, 16);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(lab.room().counters().on_disk, 2);
  EXPECT_EQ(lab.room().counters().disk_bytes, 4 * lab.page_bytes());
  ASSERT_TRUE(lab.wake(two));
  ASSERT_TRUE(lab.wake(one));
  EXPECT_TRUE(lab.is(one, 1));
  EXPECT_TRUE(lab.is(two, 2));
  EXPECT_EQ(lab.room().counters().disk_bytes, 0u);
}

TEST(SleepRoom, moves_the_oldest_to_the_disk_and_loses_the_oldest_of_the_disk) {
  const ScratchFolder folder;
  const std::size_t page = pool_of(1)->layout().page_bytes();
  Sleepers lab(disk_in(folder, 2 * page, 2 * page));
  std::vector<KvCache> caches;
  for (int i = 0; i < 3; ++i) caches.push_back(lab.asleep(i, 16));
  EXPECT_EQ(lab.room().counters().in_memory, 2);
  EXPECT_EQ(lab.room().counters().on_disk, 1);
  for (int i = 3; i < 5; ++i) caches.push_back(lab.asleep(i, 16));
  EXPECT_EQ(lab.room().counters().in_memory, 2);
  EXPECT_EQ(lab.room().counters().on_disk, 2);
  EXPECT_EQ(lab.room().counters().lost, 1u);
  EXPECT_EQ(lab.wake(caches[0]).error().code, ErrorCode::not_found);
  EXPECT_TRUE(caches[0].asleep()) << "its owner decides";
  caches[0].forget_sleeper();
  EXPECT_EQ(caches[0].length(), 0);
  for (int i = 1; i < 5; ++i) {
    ASSERT_TRUE(lab.wake(caches[static_cast<std::size_t>(i)])) << i;
    EXPECT_TRUE(lab.is(caches[static_cast<std::size_t>(i)], i)) << i;
  }
}

TEST(SleepRoom, one_that_is_larger_than_the_memory_goes_to_the_disk_at_once) {
  const ScratchFolder folder;
  const std::size_t page = pool_of(1)->layout().page_bytes();
  Sleepers lab(disk_in(folder, 2 * page));
  KvCache small = lab.asleep(1, 32), large = lab.asleep(2, 48);
  EXPECT_EQ(lab.room().counters().in_memory, 1);
  EXPECT_EQ(lab.room().counters().on_disk, 1);
  ASSERT_TRUE(lab.wake(large));
  EXPECT_TRUE(lab.is(large, 2));
}

TEST(SleepRoom, one_that_no_room_could_hold_costs_nobody_his) {
  const ScratchFolder folder;
  const std::size_t page = pool_of(1)->layout().page_bytes();
  Sleepers lab(disk_in(folder, 0, 2 * page));
  KvCache small = lab.asleep(1, 32);
  EXPECT_FALSE(lab.room().put(lab.computed(2, 48)));
  EXPECT_EQ(lab.room().counters().lost, 0u);
  ASSERT_TRUE(lab.wake(small));
  EXPECT_TRUE(lab.is(small, 1));
}

TEST(SleepRoom, refuses_what_it_has_no_room_for) {
  EXPECT_FALSE(Sleepers(memory_of(0)).room().has_room());
  Sleepers lab(memory_of(pool_of(1)->layout().page_bytes()));
  const KvCache cache = lab.computed(1, 17);
  const auto refused = lab.room().put(cache);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_TRUE(lab.is(cache, 1));
  const auto no_folder = SleepRoom::open({.memory = 0, .folder = "/no/such/folder"}, lab.pool());
  ASSERT_FALSE(no_folder);
  EXPECT_NE(no_folder.error().message.find("/no/such/folder"), std::string::npos);
}

TEST(SleepRoom, has_as_much_memory_as_the_pool_unless_told_otherwise) {
  Sleepers lab({}, 3);
  const KvCache first = lab.asleep(1, 32), second = lab.asleep(2, 16);
  EXPECT_EQ(lab.room().counters().in_memory, 2);
  const KvCache third = lab.asleep(3, 16);
  EXPECT_EQ(lab.room().counters().lost, 1u);
}

TEST(SleepRoom, wakes_behind_pages_that_were_found_and_does_not_touch_them) {
  Sleepers lab(memory_of(1 << 20));
  KvCache known = lab.computed(9, 32);
  KvCache cache = lab.asleep(1, 40);
  PageRun prefix(known.pool());
  prefix.ids.assign(known.full_pages().begin(), known.full_pages().end());
  known.pool()->share(prefix.ids);
  prefix.shared = 2;
  cache.begin_with(prefix);
  EXPECT_EQ(cache.awake(), 32);
  EXPECT_EQ(cache.length(), 40);
  EXPECT_EQ(cache.pages_missing(40), 1);
  EXPECT_EQ(cache.full_pages().size(), 2u);
  ASSERT_TRUE(lab.wake(cache));
  EXPECT_TRUE(lab.is(known, 9));
  EXPECT_EQ(cache.pages()[0], known.pages()[0]);
  EXPECT_EQ(*cache.pages()[2], Sleepers::tag(1, 2));
}

TEST(SleepRoom, a_prefix_that_covers_the_sleeper_ends_its_sleep) {
  Sleepers lab(memory_of(1 << 20));
  KvCache known = lab.computed(9, 32);
  KvCache cache = lab.asleep(1, 20);
  PageRun prefix(known.pool());
  prefix.ids.assign(known.full_pages().begin(), known.full_pages().end());
  known.pool()->share(prefix.ids);
  prefix.shared = 2;
  cache.begin_with(prefix);
  EXPECT_FALSE(cache.asleep());
  EXPECT_EQ(cache.length(), 32);
  EXPECT_EQ(lab.room().counters().in_memory, 0);
}

TEST(SleepRoom, sleepers_are_forked_and_cut_without_waking) {
  Sleepers lab(memory_of(1 << 20));
  KvCache cache = lab.asleep(1, 40);
  KvCache branch = cache.fork(20);
  EXPECT_TRUE(branch.asleep());
  EXPECT_EQ(branch.length(), 20);
  cache.truncate(35);
  EXPECT_EQ(cache.length(), 35);
  EXPECT_FALSE(cache.fork(0).asleep());
  EXPECT_EQ(lab.room().counters().in_memory, 1) << "one copy for both";
  ASSERT_TRUE(lab.wake(branch));
  EXPECT_TRUE(lab.is(branch, 1));
  EXPECT_EQ(branch.capacity(), 32);
  ASSERT_TRUE(lab.wake(cache));
  EXPECT_TRUE(lab.is(cache, 1));
  EXPECT_EQ(lab.room().counters().in_memory, 0);
  KvCache forgotten = lab.asleep(2, 40);
  forgotten.truncate(0);
  EXPECT_FALSE(forgotten.asleep());
  EXPECT_EQ(lab.room().counters().in_memory, 0);
}

TEST(SleepRoom, a_sleeping_cache_is_not_lent_and_keeps_no_page_it_does_not_need) {
  Sleepers lab(memory_of(1 << 20));
  KvCache cache = lab.asleep(1, 40);
  EXPECT_THROW(cache.lend(), std::logic_error);
  EXPECT_THROW(cache.pages(), std::logic_error);
  EXPECT_THROW(cache.bed(), std::logic_error) << "no pages yet";
  EXPECT_TRUE(cache.full_pages().empty());
  ASSERT_TRUE(cache.reserve(60));
  EXPECT_EQ(lab.pool().used(), 4);
  cache.shrink_to_fit(40);
  EXPECT_EQ(lab.pool().used(), 0);
  EXPECT_TRUE(cache.asleep());
}

// A fork's origin, or a launch that was withdrawn, writes on in the last page. The thread sanitizer is a judge here
// too.
TEST(SleepRoom, copies_nothing_behind_the_last_token) {
  const ScratchFolder folder;
  for (const SleepOptions& options : {memory_of(1 << 20), disk_in(folder)}) {
    Sleepers lab(options);
    const KvCache origin = lab.computed(1, 40);
    KvCache cache = origin.fork(40);
    std::byte* const page = origin.pages()[2];
    std::atomic<bool> stop = false;
    std::jthread writer([&] {
      const TokenRow next(lab.pool().layout(), 0, 40 % KvLayout::kPageTokens);
      std::vector<std::byte> row(TokenRow::bytes(lab.pool().layout()));
      for (int i = 0; !stop; ++i) {
        std::ranges::fill(row, static_cast<std::byte>(i));
        next.write(page, row.data());
      }
    });
    for (int round = 0; round < 20; ++round) {
      auto copy = lab.room().put(cache);
      ASSERT_TRUE(copy);
      KvCache woken = cache.fork(40);
      woken.fall_asleep(std::move(*copy));
      ASSERT_TRUE(lab.wake(woken));
      EXPECT_TRUE(lab.is(woken, 1));
    }
    stop = true;
  }
}

TEST(SleepRoom, shows_the_pages_of_a_sleeper_to_whoever_saves_it) {
  const ScratchFolder folder;
  for (const SleepOptions& options : {memory_of(1 << 20), disk_in(folder)}) {
    Sleepers lab(options);
    const KvCache cache = lab.asleep(1, 40);
    const auto image = lab.room().image(*cache.sleeper());
    ASSERT_TRUE(image);
    ASSERT_EQ(image->pages.size(), 3u);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(*image->pages[static_cast<std::size_t>(i)], Sleepers::tag(1, i));
    EXPECT_TRUE(cache.asleep());
  }
}

TEST(SleepRoom, knows_when_the_disk_gives_other_bytes_than_it_was_given) {
  const ScratchFolder folder;
  Sleepers lab(disk_in(folder));
  KvCache cache = lab.asleep(1, 40);
  const int file = nameless_file_in(folder.path());
  ASSERT_GE(file, 0);
  const char wrong = 'x';
  ASSERT_EQ(::pwrite(file, &wrong, 1, static_cast<off_t>(lab.page_bytes()) + 5), 1);
  EXPECT_EQ(lab.wake(cache).error().code, ErrorCode::io);
  EXPECT_FALSE(lab.room().image(*cache.sleeper()));
  ASSERT_EQ(::ftruncate(file, 10), 0);
  EXPECT_EQ(lab.room().wake(cache).error().code, ErrorCode::io);
}

TEST(SleepRoom, a_disk_that_takes_no_more_costs_the_oldest_and_is_reported_once) {
  const ScratchFolder folder;
  const std::size_t page = pool_of(1)->layout().page_bytes();
  Sleepers lab(disk_in(folder, page));
  KvCache oldest = lab.asleep(1, 16);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  KvCache youngest = lab.asleep(2, 16);
  const auto large = lab.room().put(lab.computed(3, 32));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(lab.room().counters().lost, 1u);
  const auto fault = lab.room().take_fault();
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->message.find(folder.path()), std::string::npos);
  EXPECT_FALSE(lab.room().take_fault());
  EXPECT_EQ(large.error().code, ErrorCode::io);
  EXPECT_FALSE(lab.wake(oldest));
  ASSERT_TRUE(lab.wake(youngest));
  EXPECT_TRUE(lab.is(youngest, 2));
  EXPECT_EQ(lab.room().counters().disk_bytes, 0u) << "slots that were not written are free again";
}

TEST(SleepRoom, sleepers_may_be_let_go_on_any_thread_while_others_fall_asleep) {
  const ScratchFolder folder;
  const std::size_t page = pool_of(1)->layout().page_bytes();
  Sleepers lab(disk_in(folder, 4 * page, 8 * page));
  for (int round = 0; round < 50; ++round) {
    std::array<std::shared_ptr<const SleepingKv>, 3> leaving;
    for (auto& one : leaving) one = lab.asleep(round, 32).sleeper();
    std::jthread other([&] {
      for (auto& one : leaving) one.reset();
    });
    KvCache staying = lab.asleep(round + 1, 32);
    ASSERT_TRUE(lab.wake(staying));
    EXPECT_TRUE(lab.is(staying, round + 1));
  }
  EXPECT_EQ(lab.room().counters().in_memory + lab.room().counters().on_disk, 0);
  EXPECT_EQ(lab.room().counters().memory_bytes, 0u);
}

}  // namespace
}  // namespace troupe
