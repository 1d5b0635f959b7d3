#include "runtime/kv/page_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/check.h"

namespace troupe {

PagePool::PagePool(Buffer memory, const KvLayout& layout, std::int64_t pages, bool poison)
    : memory_(std::move(memory)), layout_(layout), poison_(poison), holders_(static_cast<std::size_t>(pages)) {
  TROUPE_CHECK(memory_.size() >= static_cast<std::size_t>(pages) * layout_.page_bytes());
  free_.reserve(holders_.size());
  for (std::int64_t page = pages; page-- > 0;) free_.push_back(static_cast<PageId>(page));  // low pages go out first
}

std::int64_t PagePool::free() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(free_.size());
}

bool PagePool::take(std::int64_t count, std::vector<PageId>& out, const std::shared_ptr<PagePayer>& payer) {
  const std::lock_guard lock(mutex_);
  if (count > static_cast<std::int64_t>(free_.size())) return false;
  out.reserve(out.size() + static_cast<std::size_t>(count));  // what throws, throws before anything is counted
  const Age now = age();
  used_.add(count, now);
  pay(payer.get(), count, now);
  for (; count > 0; --count) {
    out.push_back(free_.back());
    free_.pop_back();
    TROUPE_CHECK(holders(out.back()).references == 0);
    holders(out.back()).references = 1;
    holders(out.back()).payer = payer;
  }
  return true;
}

void PagePool::retain(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  for (PageId page : pages) {
    TROUPE_CHECK(holders(page).references > 0);
    ++holders(page).references;
  }
}

void PagePool::release(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  const Age now = age();
  for (PageId page : pages) {
    TROUPE_CHECK(holders(page).references > holders(page).shares);
    give_up(page, now);
  }
}

void PagePool::share(PageId page, int filled) {
  const std::lock_guard lock(mutex_);
  add_share(page, filled);
}

void PagePool::share(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  for (PageId page : pages) add_share(page, KvLayout::kPageTokens);
}

void PagePool::add_share(PageId page, int filled) {
  Holders& now = holders(page);
  TROUPE_CHECK(now.references > 0 && filled >= 1 && filled <= KvLayout::kPageTokens);
  ++now.references;
  ++now.shares;
  now.frozen = std::max(now.frozen, filled);
}

void PagePool::unshare(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  const Age now = age();
  for (PageId page : pages) {
    Holders& held = holders(page);
    TROUPE_CHECK(held.shares > 0);
    if (--held.shares == 0) held.frozen = 0;
    give_up(page, now);
  }
}

bool PagePool::writable(PageId page, int position) const {
  const std::lock_guard lock(mutex_);
  return position >= holders_[static_cast<std::size_t>(page)].frozen;
}

bool PagePool::alone(PageId page) const {
  const std::lock_guard lock(mutex_);
  return holders_[static_cast<std::size_t>(page)].references == 1;
}

std::byte* PagePool::address(PageId page) const {
  return memory_.data() + static_cast<std::size_t>(page) * layout_.page_bytes();
}

void PagePool::copy(PageId from, PageId to) {
  std::memcpy(address(to), address(from), layout_.page_bytes());
}

void PagePool::give_up(PageId page, Age now) {
  Holders& held = holders(page);
  // Shares alone are left, or nothing: who took the page has let go.
  if (--held.references == held.shares) change_payer(held, nullptr, now);
  if (held.references > 0) return;
  house_.add(-1, now);
  used_.add(-1, now);
  if (poison_) std::memset(address(page), kPoison, layout_.page_bytes());
  free_.push_back(page);
}

// -- who pays --

void PagePool::pay(PagePayer* payer, std::int64_t pages, Age now) {
  if (payer == nullptr) return house_.add(pages, now);
  payer->meter.add(pages, now);
  (payer->ended ? ended_ : living_).add(pages, now);
}

void PagePool::change_payer(Holders& page, const std::shared_ptr<PagePayer>& payer, Age now) {
  if (page.payer == payer) return;
  pay(page.payer.get(), -1, now);
  pay(payer.get(), 1, now);
  page.payer = payer;
}

void PagePool::charge(std::span<const PageId> pages, const std::shared_ptr<PagePayer>& payer) {
  const std::lock_guard lock(mutex_);
  const Age now = age();
  for (PageId page : pages) {
    TROUPE_CHECK(holders(page).references > holders(page).shares);
    change_payer(holders(page), payer, now);
  }
}

void PagePool::use_clock(std::function<TimePoint()> clock) {
  const std::lock_guard lock(mutex_);
  age_ = age();
  clock_ = clock ? std::move(clock) : std::chrono::steady_clock::now;
  read_ = clock_();
}

void PagePool::close_account(PagePayer& payer) {
  const std::lock_guard lock(mutex_);
  const Age now = age();
  living_.part(payer.meter, now);
  ended_.join(payer.meter, now);
  payer.ended = true;
}

PageTime PagePool::paid_by(const PagePayer& payer) const {
  const std::lock_guard lock(mutex_);
  return payer.meter.at(age());
}

PageBill PagePool::bill() const {
  const std::lock_guard lock(mutex_);
  const Age now = age();
  return {used_.at(now), house_.at(now), living_.at(now), ended_.at(now)};
}

}  // namespace troupe
