#include "runtime/kv/page_pool.h"

#include <cstring>
#include <utility>

#include "kernels/check.h"

namespace troupe {

PagePool::PagePool(Buffer memory, const KvLayout& layout, std::int64_t pages, bool poison)
    : memory_(std::move(memory)), layout_(layout), poison_(poison), references_(static_cast<std::size_t>(pages), 0) {
  TROUPE_CHECK(memory_.size() >= static_cast<std::size_t>(pages) * layout_.page_bytes());
  free_.reserve(references_.size());
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
    TROUPE_CHECK(references_[static_cast<std::size_t>(out.back())] == 0);
    references_[static_cast<std::size_t>(out.back())] = 1;
  }
  return true;
}

void PagePool::retain(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  for (PageId page : pages) {
    TROUPE_CHECK(references_[static_cast<std::size_t>(page)] > 0);
    ++references_[static_cast<std::size_t>(page)];
  }
}

void PagePool::release(std::span<const PageId> pages) {
  const std::lock_guard lock(mutex_);
  for (PageId page : pages) {
    std::int32_t& references = references_[static_cast<std::size_t>(page)];
    TROUPE_CHECK(references > 0);
    if (--references > 0) continue;
    if (poison_) std::memset(address(page), kPoison, layout_.page_bytes());
    free_.push_back(page);
  }
}

std::byte* PagePool::address(PageId page) const {
  return memory_.data() + static_cast<std::size_t>(page) * layout_.page_bytes();
}

}  // namespace troupe
