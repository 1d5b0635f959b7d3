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

bool PagePool::take(std::int64_t count, std::vector<PageId>& out) {
  const std::lock_guard lock(mutex_);
  if (count > static_cast<std::int64_t>(free_.size())) return false;
  for (; count > 0; --count) {
    out.push_back(free_.back());
    free_.pop_back();
    TROUPE_CHECK(holders(out.back()).references == 0);
    holders(out.back()).references = 1;
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
  for (PageId page : pages) {
    TROUPE_CHECK(holders(page).references > holders(page).shares);
    give_up(page);
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
  for (PageId page : pages) {
    Holders& now = holders(page);
    TROUPE_CHECK(now.shares > 0);
    if (--now.shares == 0) now.frozen = 0;
    give_up(page);
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

void PagePool::give_up(PageId page) {
  if (--holders(page).references > 0) return;
  if (poison_) std::memset(address(page), kPoison, layout_.page_bytes());
  free_.push_back(page);
}

}  // namespace troupe
