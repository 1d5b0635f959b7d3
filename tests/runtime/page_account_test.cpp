// Page accounts: whatever order pages are taken, shared and let go in, what all have paid is what the pages cost.
#include "runtime/kv/page_account.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <list>
#include <thread>

#include "runtime/kv/kv_cache.h"
#include "tests/runtime/pool_of.h"
#include "tests/support/random.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

using std::chrono::nanoseconds;

PageTime plain(std::int64_t page_nanoseconds) {
  return {page_nanoseconds / 1'000'000'000, page_nanoseconds % 1'000'000'000};
}

// A clock that is set by hand.
class HandClock {
 public:
  explicit HandClock(PagePool& pool) {
    pool.use_clock([this] { return TimePoint(now); });
  }
  nanoseconds now{12345};
};

// The same by one number a page: each used page costs its payer every nanosecond that passes.
class PlainBills {
 public:
  struct Payer {
    std::int64_t paid = 0;
    bool ended = false;
  };

  void pass(std::int64_t time) {
    for (Page& page : pages_) {
      if (page.owners + page.shares == 0) continue;
      total_ += time;
      (page.payer == nullptr ? house_ : page.payer->paid) += time;
    }
  }
  void take(PageId page, Payer* payer) { at(page) = {1, 0, payer}; }
  void retain(PageId page) { ++at(page).owners; }
  void share(PageId page) { ++at(page).shares; }
  void release(PageId page) {
    if (--at(page).owners == 0) at(page).payer = nullptr;
  }
  void unshare(PageId page) { --at(page).shares; }
  void charge(PageId page, Payer* payer) { at(page).payer = payer; }

  std::list<Payer> payers;

  void expect_same(const PageBill& bill) const {
    std::int64_t living = 0, ended = 0;
    for (const Payer& payer : payers) (payer.ended ? ended : living) += payer.paid;
    EXPECT_EQ(bill.total, plain(total_));
    EXPECT_EQ(bill.house, plain(house_));
    EXPECT_EQ(bill.living, plain(living));
    EXPECT_EQ(bill.ended, plain(ended));
    EXPECT_EQ(bill.total, bill.house + bill.living + bill.ended);
  }

 private:
  struct Page {
    int owners = 0, shares = 0;
    Payer* payer = nullptr;
  };
  Page& at(PageId page) { return pages_[static_cast<std::size_t>(page)]; }

  std::vector<Page> pages_{64};
  std::int64_t total_ = 0, house_ = 0;
};

class RandomBills {
 public:
  explicit RandomBills(std::uint64_t seed) : random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      pass();
      act();
      plain_.expect_same(pool_->bill());
      for (const Known& one : open_) EXPECT_EQ(one.account->paid(), plain(one.plain->paid));
    }
    while (!holds_.empty()) let_go();
    open_.clear();
    const PageBill at_rest = pool_->bill();
    clock_.now += std::chrono::hours(1);
    EXPECT_EQ(pool_->bill().total, at_rest.total) << "no page is used";
  }

 private:
  struct Known {
    std::unique_ptr<PageAccount> account;
    PlainBills::Payer* plain;
  };
  struct Hold {
    std::vector<PageId> pages;
    bool share;
  };

  template <class Container>
  auto& any(Container& of) {
    return of[static_cast<std::size_t>(random_.below(std::ssize(of)))];
  }

  void pass() {
    const std::int64_t time = random_.below(4) == 0 ? random_.below(3'000'000'000) : random_.below(3);
    clock_.now += nanoseconds(time);
    plain_.pass(time);
  }

  void act() {
    const std::int64_t choice = random_.below(10);
    if (open_.empty() || choice == 0) return open();
    if (choice == 1 && open_.size() > 3) return close();
    if (holds_.empty() || choice <= 4) return take();
    if (choice <= 6) return hold_too();
    if (choice == 7) return charge();
    let_go();
  }

  void open() {
    plain_.payers.emplace_back();
    open_.push_back({std::make_unique<PageAccount>(pool_), &plain_.payers.back()});
  }
  // Its pages may be held on.
  void close() {
    std::swap(any(open_), open_.back());
    open_.back().plain->ended = true;
    open_.pop_back();
  }
  void take() {
    const bool by_house = random_.below(5) == 0;
    Known& payer = any(open_);
    Hold hold{{}, false};
    if (!pool_->take(random_.below(12), hold.pages, by_house ? nullptr : payer.account->payer())) return;
    for (PageId page : hold.pages) plain_.take(page, by_house ? nullptr : payer.plain);
    holds_.push_back(std::move(hold));
  }
  void hold_too() {
    Hold hold = any(holds_);
    hold.share |= random_.below(3) > 0;
    if (hold.share) pool_->share(hold.pages);
    if (!hold.share) pool_->retain(hold.pages);
    for (PageId page : hold.pages) hold.share ? plain_.share(page) : plain_.retain(page);
    holds_.push_back(std::move(hold));
  }
  void charge() {
    const Hold& hold = any(holds_);
    if (hold.share) return;
    Known& payer = any(open_);
    pool_->charge(hold.pages, payer.account->payer());
    for (PageId page : hold.pages) plain_.charge(page, payer.plain);
  }
  void let_go() {
    std::swap(any(holds_), holds_.back());
    const Hold& hold = holds_.back();
    hold.share ? pool_->unshare(hold.pages) : pool_->release(hold.pages);
    for (PageId page : hold.pages) hold.share ? plain_.unshare(page) : plain_.release(page);
    holds_.pop_back();
  }

  Random random_;
  std::shared_ptr<PagePool> pool_ = pool_of(64);
  HandClock clock_{*pool_};
  PlainBills plain_;
  std::vector<Known> open_;
  std::vector<Hold> holds_;
};

TEST(PageAccounts, are_those_of_a_bill_that_is_written_page_by_page) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) RandomBills(seed).run(small_scale() ? 2'000 : 25'000);
}

TEST(PageAccounts, are_charged_to_who_took_a_page_and_to_the_house_when_that_one_lets_go) {
  const auto pool = pool_of(4);
  HandClock clock(*pool);
  const PageAccount origin(pool), other(pool);
  KvCache cache(pool);
  ASSERT_TRUE(cache.reserve(20, origin.payer()));
  cache.lend();
  cache.commit(20);
  KvCache branch = cache.fork(20);
  clock.now += nanoseconds(10);  // two pages of the origin's
  EXPECT_EQ(origin.paid(), plain(20));
  EXPECT_EQ(other.paid(), plain(0));
  ASSERT_TRUE(branch.reserve(21, other.payer()));  // the branch goes on inside a page: a copy, which it pays for
  clock.now += nanoseconds(10);
  EXPECT_EQ(origin.paid(), plain(40));
  EXPECT_EQ(other.paid(), plain(10));
  cache = KvCache(pool);
  clock.now += nanoseconds(10);
  EXPECT_EQ(origin.paid(), plain(40));
  EXPECT_EQ(pool->bill().house, plain(20));
  EXPECT_EQ(pool->bill().total, plain(80));
}

TEST(PageAccounts, that_were_closed_pay_for_what_a_launch_still_holds) {
  const auto pool = pool_of(4);
  HandClock clock(*pool);
  auto account = std::make_unique<PageAccount>(pool);
  auto cache = std::make_unique<KvCache>(pool);
  ASSERT_TRUE(cache->reserve(32, account->payer()));
  KvLease lease = cache->lend();
  cache.reset();
  account.reset();
  clock.now += nanoseconds(7);
  EXPECT_EQ(pool->bill().ended, plain(14));
  EXPECT_EQ(pool->bill().living, plain(0));
  lease = {};
  clock.now += nanoseconds(7);
  EXPECT_EQ(pool->bill().ended, plain(14));
  EXPECT_EQ(pool->bill().total, plain(14));
}

TEST(PageAccounts, go_on_when_the_clock_is_changed) {
  const auto pool = pool_of(4);
  const PageAccount account(pool);
  KvCache cache(pool);
  {
    HandClock first(*pool);
    ASSERT_TRUE(cache.reserve(16, account.payer()));
    first.now += nanoseconds(5);
    HandClock second(*pool);  // behind the first one
    second.now += nanoseconds(6);
    EXPECT_EQ(account.paid(), plain(11));
    pool->use_clock({});
  }
  EXPECT_GE(account.paid(), plain(11));
}

TEST(PageAccounts, hold_more_than_64_bits_of_nanoseconds) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto years = std::chrono::hours(24 * 365 * 50) + nanoseconds(999'999'999);
  const PageTime time = PageTime::of(kMost, years);
  EXPECT_EQ(time.seconds, kMost * 1'576'800'000 + kMost - 3);
  EXPECT_EQ(time.nanoseconds, 3'000'000'000 - kMost);
  EXPECT_EQ(time + time - time, time);
  EXPECT_LT(time, time + plain(1));
  EXPECT_EQ(time - time, PageTime{});
}

TEST(PageAccounts, add_up_while_many_threads_take_and_let_go) {
  const auto pool = pool_of(64);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&pool, t] {
        Random random(t);
        const PageAccount account(pool);
        KvCache cache(pool);
        for (int i = 0; i < (small_scale() ? 500 : 5'000); ++i) {
          const PageBill bill = pool->bill();
          EXPECT_EQ(bill.total, bill.house + bill.living + bill.ended);
          const PageTime mine = account.paid();
          EXPECT_LE(mine, pool->bill().living);
          if (random.below(3) == 0) cache = KvCache(pool);
          (void)cache.reserve(random.below(400), account.payer());
        }
      });
    }
  }
  EXPECT_EQ(pool->bill().living, PageTime{});
  EXPECT_EQ(pool->bill().total, pool->bill().ended);
}

}  // namespace
}  // namespace troupe::test
