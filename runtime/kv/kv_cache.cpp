#include "runtime/kv/kv_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/check.h"

namespace troupe {

std::int64_t KvLease::capacity() const {
  return static_cast<std::int64_t>(run_->ids.size()) * KvLayout::kPageTokens;
}

KvCache::KvCache(std::shared_ptr<PagePool> pool) : run_(std::make_shared<PageRun>(std::move(pool))) {}

KvCache& KvCache::operator=(KvCache&& other) noexcept {
  revoke();  // a step of the old pages is nobody's now
  run_ = std::move(other.run_);
  revoked_ = std::move(other.revoked_);
  length_ = std::exchange(other.length_, 0);
  return *this;
}

std::int64_t KvCache::capacity() const {
  return static_cast<std::int64_t>(run_->ids.size()) * KvLayout::kPageTokens;
}

bool KvCache::reserve(std::int64_t tokens) {
  TROUPE_CHECK(!lent());
  const std::int64_t missing = pages_for(tokens) - static_cast<std::int64_t>(run_->ids.size());
  if (missing <= 0) return true;
  PageRun extra(run_->pool);
  if (!run_->pool->take(missing, extra.ids)) return false;
  adopt(extra);
  return true;
}

void KvCache::adopt(PageRun& extra) {
  TROUPE_CHECK(!lent() && extra.pool == run_->pool);
  own_alone();
  for (PageId page : extra.ids) run_->addresses.push_back(run_->pool->address(page));
  run_->ids.insert(run_->ids.end(), extra.ids.begin(), extra.ids.end());
  extra.ids.clear();
}

// A launch whose step was revoked may still read the old list: the owner goes on with a copy that shares the pages.
void KvCache::own_alone() {
  if (run_.use_count() == 1) return;
  auto copy = std::make_shared<PageRun>(run_->pool);
  run_->pool->retain(run_->ids);
  copy->ids = run_->ids;
  copy->addresses = run_->addresses;
  run_ = std::move(copy);
}

void KvCache::shrink_to_fit(std::int64_t tokens) {
  TROUPE_CHECK(!lent());
  const auto pages = static_cast<std::size_t>(pages_for(std::max(tokens, length_)));
  if (pages >= run_->ids.size()) return;
  own_alone();
  run_->pool->release(std::span(run_->ids).subspan(pages));
  run_->ids.resize(pages);
  run_->addresses.resize(pages);
}

void KvCache::truncate(std::int64_t length) {
  TROUPE_CHECK(!lent() && length >= 0 && length <= length_);
  length_ = length;
}

KvLease KvCache::lend() {
  TROUPE_CHECK(!lent());
  revoked_ = std::make_shared<std::atomic<bool>>(false);
  KvLease lease;
  lease.run_ = run_;
  lease.revoked_ = revoked_;
  lease.position_ = length_;
  return lease;
}

void KvCache::commit(std::int64_t length) {
  TROUPE_CHECK(lent() && length >= length_ && length <= capacity());
  length_ = length;
  revoked_.reset();
}

void KvCache::revoke() {
  if (!revoked_) return;
  revoked_->store(true, std::memory_order_release);
  revoked_.reset();
}

}  // namespace troupe
