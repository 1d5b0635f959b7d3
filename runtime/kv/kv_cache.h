// KvCache: one sequence's pages and its committed length. KvLease: the counted handle that travels with a step.
//
// Owned by its session. Write, then commit: a launch writes rows behind length() into pages that the lease keeps
// alive; they count only once the session commits them, so a failed or stale step leaves the cache as it was. If the
// session dies in between, the lease holds the pages until the launch has ended.
// While a lease is out the owner only reads: reserve, truncate, shrink and commit of another position are mistakes
// (checked). Not thread-safe; the lease may be used and dropped on another thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kv/page_pool.h"

namespace troupe {

// Pages with one reference each, released when the last holder goes.
struct PageRun {
  std::shared_ptr<PagePool> pool;
  std::vector<PageId> ids;
  std::vector<std::byte*> addresses;  // of ids, in order

  explicit PageRun(std::shared_ptr<PagePool> owner) : pool(std::move(owner)) {}
  PageRun(const PageRun&) = delete;
  PageRun& operator=(const PageRun&) = delete;
  ~PageRun() { pool->release(ids); }
};

class KvLease {
 public:
  KvLease() = default;
  std::byte* const* pages() const { return run_->addresses.data(); }
  std::int64_t capacity() const;                       // tokens that the pages can hold
  std::int64_t position() const { return position_; }  // committed tokens when it was lent
  // Set by the owner when the step's result is no longer wanted; read when a batch is gathered.
  bool revoked() const { return revoked_ == nullptr || revoked_->load(std::memory_order_acquire); }

 private:
  friend class KvCache;
  std::shared_ptr<PageRun> run_;
  std::shared_ptr<std::atomic<bool>> revoked_;
  std::int64_t position_ = 0;
};

class KvCache {
 public:
  explicit KvCache(std::shared_ptr<PagePool> pool);
  KvCache(KvCache&&) = default;
  KvCache& operator=(KvCache&& other) noexcept;
  ~KvCache() { revoke(); }

  std::int64_t length() const { return length_; }
  std::int64_t capacity() const;
  const std::shared_ptr<PagePool>& pool() const { return run_->pool; }

  // Takes pages until capacity() >= tokens; all or nothing.
  bool reserve(std::int64_t tokens);
  // Takes over pages that somebody took from the same pool for this cache. `extra` is left without pages.
  void adopt(PageRun& extra);
  // Gives back the pages past `tokens` (never below length()).
  void shrink_to_fit(std::int64_t tokens);
  // Forgets the tokens from `length` on. Their pages stay reserved.
  void truncate(std::int64_t length);

  bool lent() const { return revoked_ != nullptr; }
  KvLease lend();
  // The step that was lent has been computed: length becomes `length`. Ends the lease.
  void commit(std::int64_t length);
  // The step failed or is not wanted: nothing of it counts. Ends the lease. A launch may still write behind length()
  // until it drops its handle; launches run one after another, so the next step writes after it.
  void revoke();

 private:
  void own_alone();

  std::shared_ptr<PageRun> run_;
  std::shared_ptr<std::atomic<bool>> revoked_;
  std::int64_t length_ = 0;
};

}  // namespace troupe
