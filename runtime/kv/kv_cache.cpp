#include "runtime/kv/kv_cache.h"

#include <algorithm>
#include <utility>

#include "kernels/check.h"
#include "runtime/planted_fault.h"
#include "runtime/sole_owner.h"

namespace troupe {
namespace {

std::int64_t full_pages_of(std::int64_t tokens) {
  return tokens / KvLayout::kPageTokens;
}

}  // namespace

void PageRun::cut(std::size_t count) {
  if (count >= ids.size()) return;
  const auto gone = std::span(ids).subspan(count);
  const std::size_t shares = shared > count ? shared - count : 0;
  pool->unshare(gone.first(shares));
  pool->release(gone.subspan(shares));
  ids.resize(count);
  addresses.resize(std::min(addresses.size(), count));
  shared = std::min(shared, count);
}

std::int64_t KvLease::capacity() const {
  return static_cast<std::int64_t>(run_->ids.size()) * KvLayout::kPageTokens;
}

KvLease KvLease::without_pages(std::int64_t position, std::shared_ptr<std::atomic<bool>> revoked) {
  KvLease lease;
  lease.revoked_ = std::move(revoked);
  lease.position_ = position;
  return lease;
}

void KvLease::copy_shared_page() const {
  if (source_ != nullptr && !planted(PlantedFault::page_not_copied)) run_->pool->copy(source_->ids.front(), copy_);
}

KvCache::KvCache(std::shared_ptr<PagePool> pool) : run_(std::make_shared<PageRun>(std::move(pool))) {}

KvCache& KvCache::operator=(KvCache&& other) noexcept {
  revoke();  // a step of the old pages is nobody's now
  run_ = std::move(other.run_);
  source_ = std::move(other.source_);
  revoked_ = std::move(other.revoked_);
  sleeper_ = std::move(other.sleeper_);
  length_ = std::exchange(other.length_, 0);
  awake_ = other.awake_;
  computed_here_ = other.computed_here_;
  return *this;
}

std::int64_t KvCache::capacity() const {
  return static_cast<std::int64_t>(run_->ids.size()) * KvLayout::kPageTokens;
}

// The page that the next token goes into has tokens already, and is not this sequence's to write.
bool KvCache::tail_is_foreign() const {
  const auto filled = static_cast<int>(length_ % KvLayout::kPageTokens);
  const auto tail = static_cast<std::size_t>(full_pages_of(length_));
  if (filled == 0 || tail >= run_->ids.size()) return false;
  return tail < run_->shared || !run_->pool->writable(run_->ids[tail], filled);
}

std::int64_t KvCache::pages_missing(std::int64_t tokens) const {
  const std::int64_t more = pages_for(tokens) - static_cast<std::int64_t>(run_->ids.size());
  return std::max<std::int64_t>(0, more) + (tokens > length_ && tail_is_foreign() ? 1 : 0);
}

bool KvCache::reserve(std::int64_t tokens, const std::shared_ptr<PagePayer>& payer) {
  TROUPE_CHECK(!lent());
  const std::int64_t missing = pages_missing(tokens);
  if (missing <= 0) return true;
  PageRun extra(run_->pool);
  if (!run_->pool->take(missing, extra.ids, payer)) return false;
  adopt(extra);
  return true;
}

void KvCache::charge(const std::shared_ptr<PagePayer>& payer) {
  run_->pool->charge(std::span(run_->ids).subspan(run_->shared), payer);
}

void KvCache::adopt(PageRun& extra) {
  TROUPE_CHECK(!lent() && extra.pool == run_->pool && extra.shared == 0);
  if (extra.ids.empty()) return;
  own_alone();
  if (tail_is_foreign()) replace_tail(extra);
  for (PageId page : extra.ids) run_->addresses.push_back(run_->pool->address(page));
  run_->ids.insert(run_->ids.end(), extra.ids.begin(), extra.ids.end());
  extra.ids.clear();
}

// The foreign page is held until the copy is committed: until then its content must not change.
void KvCache::replace_tail(PageRun& extra) {
  const auto tail = static_cast<std::size_t>(full_pages_of(length_));
  source_ = std::make_shared<PageRun>(run_->pool);
  source_->ids.push_back(run_->ids[tail]);
  source_->shared = tail < run_->shared ? 1 : 0;
  run_->shared = std::min(run_->shared, tail);
  run_->ids[tail] = extra.ids.back();
  run_->addresses[tail] = run_->pool->address(extra.ids.back());
  extra.ids.pop_back();
}

void KvCache::begin_with(PageRun& prefix) {
  TROUPE_CHECK(!lent() && run_->ids.empty() && prefix.pool == run_->pool && prefix.shared == prefix.ids.size());
  own_alone();
  run_->ids.swap(prefix.ids);
  run_->shared = std::exchange(prefix.shared, 0);
  for (PageId page : run_->ids) run_->addresses.push_back(run_->pool->address(page));
  length_ = std::max(length_, capacity());
  awake_ = capacity();
  if (awake_ == length_) sleeper_.reset();
}

KvCache KvCache::fork(std::int64_t length) const {
  TROUPE_CHECK(length >= 0 && length <= length_);
  KvCache branch(run_->pool);
  PageRun& run = *branch.run_;
  branch.length_ = length;
  branch.computed_here_ = computed_here_;
  if (asleep()) {
    if (length > 0) branch.sleeper_ = sleeper_;
    return branch;
  }
  const auto pages = static_cast<std::size_t>(pages_for(length)),
             full = static_cast<std::size_t>(full_pages_of(length));
  run.ids.assign(run_->ids.begin(), run_->ids.begin() + static_cast<std::ptrdiff_t>(pages));
  run.addresses.assign(run_->addresses.begin(), run_->addresses.begin() + static_cast<std::ptrdiff_t>(pages));
  // A page that this cache itself has not got its copy of yet: the branch reads what it is to be copied from.
  const auto tail = static_cast<std::size_t>(full_pages_of(length_));
  if (source_ != nullptr && pages > tail) {
    run.ids[tail] = source_->ids.front();
    run.addresses[tail] = run_->pool->address(run.ids[tail]);
  }
  run_->pool->share(std::span(run.ids).first(full));
  if (pages > full) run_->pool->share(run.ids[full], static_cast<int>(length % KvLayout::kPageTokens));
  run.shared = pages;
  return branch;
}

std::byte* const* KvCache::pages() const {
  TROUPE_CHECK(source_ == nullptr && !asleep());
  return run_->addresses.data();
}

std::span<const PageId> KvCache::full_pages() const {
  return std::span(run_->ids).first(static_cast<std::size_t>(full_pages_of(awake())));
}

// A launch whose step was revoked may still read the old list: the owner goes on with a copy that shares the pages.
void KvCache::own_alone() {
  if (sole_owner(run_) || planted(PlantedFault::pages_freed_in_launch)) return;
  auto copy = std::make_shared<PageRun>(run_->pool);
  run_->pool->share(std::span(run_->ids).first(run_->shared));
  run_->pool->retain(std::span(run_->ids).subspan(run_->shared));
  copy->ids = run_->ids;
  copy->addresses = run_->addresses;
  copy->shared = run_->shared;
  run_ = std::move(copy);
}

void KvCache::shrink_to_fit(std::int64_t tokens) {
  TROUPE_CHECK(!lent());
  const auto pages = static_cast<std::size_t>(pages_for(asleep() ? awake_ : std::max(tokens, length_)));
  if (pages >= run_->ids.size()) return;
  own_alone();
  run_->cut(pages);
}

void KvCache::truncate(std::int64_t length) {
  TROUPE_CHECK(!lent() && length >= 0 && length <= length_);
  if (full_pages_of(length) < full_pages_of(length_) || length % KvLayout::kPageTokens == 0) source_.reset();
  length_ = length;
  if (asleep() && length_ <= awake_) sleeper_.reset();
  auto keep = static_cast<std::size_t>(pages_for(length));
  while (keep < run_->ids.size() && run_->pool->writable(run_->ids[keep], 0)) ++keep;
  if (keep == run_->ids.size()) return;
  own_alone();
  run_->cut(keep);
}

KvLease KvCache::lend() {
  TROUPE_CHECK(!lent() && !asleep() && !tail_is_foreign());
  revoked_ = std::make_shared<std::atomic<bool>>(false);
  KvLease lease;
  lease.run_ = run_;
  lease.revoked_ = revoked_;
  lease.position_ = length_;
  lease.source_ = source_;
  if (source_ != nullptr) lease.copy_ = run_->ids[static_cast<std::size_t>(full_pages_of(length_))];
  return lease;
}

void KvCache::commit(std::int64_t length) {
  TROUPE_CHECK(lent() && length >= length_ && length <= capacity());
  if (length > length_) source_.reset();
  length_ = length;
  revoked_.reset();
}

void KvCache::revoke() {
  if (!revoked_) return;
  revoked_->store(true, std::memory_order_release);
  revoked_.reset();
}

void KvCache::fall_asleep(std::shared_ptr<const SleepingKv> copy) {
  TROUPE_CHECK(!lent() && !asleep() && copy != nullptr);
  KvCache sleeping(pool());
  sleeping.sleeper_ = std::move(copy);
  sleeping.length_ = length_;
  sleeping.computed_here_ = computed_here_;
  *this = std::move(sleeping);
}

std::byte* const* KvCache::bed() const {
  TROUPE_CHECK(asleep() && capacity() >= length_);
  return run_->addresses.data();
}

void KvCache::wake() {
  TROUPE_CHECK(asleep() && capacity() >= length_);
  sleeper_.reset();
}

void KvCache::forget_sleeper() {
  length_ = awake();
  sleeper_.reset();
}

}  // namespace troupe
