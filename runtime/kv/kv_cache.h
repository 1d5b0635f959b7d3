// KvCache: one sequence's pages and its committed length. KvLease: the counted handle that travels with a step.
//
// Owned by its session. Write, then commit: a launch writes rows behind length() into pages that the lease keeps
// alive; they count only once the session commits them, so a failed or stale step leaves the cache as it was. If the
// session dies in between, the lease holds the pages until the launch has ended.
// While a lease is out the owner only reads: reserve, truncate, shrink and commit of another position are mistakes
// (checked). Not thread-safe; the lease may be used and dropped on another thread.
//
// Pages may be shared: those of a common prefix, and those that a fork has from its origin. Shared positions are never
// written. A sequence that goes on inside a page which is not its own to write gets a copy of it, one page more; the
// copy is made by the launch, before the step's first row, since nobody else knows when a page is at rest.
//
// A cache may be asleep (runtime/kv/sleep_room.h): its tokens from awake() on are kept, but in no page. It counts them
// in length() and may be truncated, forked, given pages and a longer prefix; before it is lent it must be woken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kv/page_pool.h"

namespace troupe {

class SleepingKv;

// Pages with one hold each, let go when the last holder of the run goes.
struct PageRun {
  std::shared_ptr<PagePool> pool;
  std::vector<PageId> ids;
  std::vector<std::byte*> addresses;  // of ids, in order; filled by KvCache
  std::size_t shared = 0;             // so many of ids, the first ones, are shares

  explicit PageRun(std::shared_ptr<PagePool> owner) : pool(std::move(owner)) {}
  PageRun(const PageRun&) = delete;
  PageRun& operator=(const PageRun&) = delete;
  ~PageRun() { cut(0); }

  // Lets go of the pages from `count` on.
  void cut(std::size_t count);
};

class KvLease {
 public:
  KvLease() = default;
  std::byte* const* pages() const { return run_->addresses.data(); }
  std::int64_t capacity() const;                       // tokens that the pages can hold
  std::int64_t position() const { return position_; }  // committed tokens when it was lent
  // Set by the owner when the step's result is no longer wanted; read when a batch is gathered.
  // For the queue of a replay, whose steps get their pages when a batch has taken them: a lease that has a position and
  // can be revoked, and nothing else.
  static KvLease without_pages(std::int64_t position, std::shared_ptr<std::atomic<bool>> revoked);
  bool revoked() const { return revoked_ == nullptr || revoked_->load(std::memory_order_acquire); }
  // Before the row at position() is computed, on the thread that launches. Repeating it is harmless until then.
  void copy_shared_page() const;

 private:
  friend class KvCache;
  std::shared_ptr<PageRun> run_;
  std::shared_ptr<PageRun> source_;  // null, or the one page to copy
  PageId copy_ = 0;                  // where to
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

  // Pages to take before `tokens` tokens can stand here: for those that have none, and for a shared page to write in.
  std::int64_t pages_missing(std::int64_t tokens) const;
  // Takes pages_missing(tokens), for which `payer` pays (null: the house); all or nothing.
  bool reserve(std::int64_t tokens, const std::shared_ptr<PagePayer>& payer = nullptr);
  // From now on `payer` pays for the pages that this cache did not get by sharing.
  void charge(const std::shared_ptr<PagePayer>& payer);
  // Takes over pages_missing pages that somebody took from the same pool for this cache. `extra` is left without pages.
  void adopt(PageRun& extra);
  // A cache without pages, empty or asleep, begins with the full pages of a prefix that another sequence computed.
  // `prefix`, all shares, is left without pages.
  void begin_with(PageRun& prefix);
  // Another sequence with the first `length` tokens of this one, at no page's cost until it goes on. May be called
  // while this one is lent. The fork of one that is asleep has all its tokens asleep, and no page.
  KvCache fork(std::int64_t length) const;
  // Where the committed tokens are, for reading. Not of a cache that has pages to write to already (see fork).
  std::byte* const* pages() const;
  // False when anything in it came from outside, a file say: then nobody else may begin with its pages.
  bool computed_here() const { return computed_here_; }
  void mark_foreign() { computed_here_ = false; }
  // The pages whose 16 tokens are all committed and awake.
  std::span<const PageId> full_pages() const;
  // Gives back the pages past `tokens` (never below length()); of one that is asleep, past awake().
  void shrink_to_fit(std::int64_t tokens);
  // Forgets the tokens from `length` on. Their pages stay reserved, except shared ones.
  void truncate(std::int64_t length);

  bool asleep() const { return sleeper_ != nullptr; }
  // The first tokens of length() that stand in pages: all, unless it is asleep.
  std::int64_t awake() const { return asleep() ? awake_ : length_; }
  const std::shared_ptr<const SleepingKv>& sleeper() const { return sleeper_; }
  // Gives all pages back. `copy` is of these very tokens. Not while it is lent.
  void fall_asleep(std::shared_ptr<const SleepingKv> copy);
  // The pages into which somebody writes the tokens from awake() on, before wake(). There must be pages for all.
  std::byte* const* bed() const;
  void wake();
  // What was asleep is lost: length() becomes awake().
  void forget_sleeper();

  bool lent() const { return revoked_ != nullptr; }
  KvLease lend();
  // The step that was lent has been computed: length becomes `length`. Ends the lease.
  void commit(std::int64_t length);
  // The step failed or is not wanted: nothing of it counts. Ends the lease. A launch may still write behind length()
  // until it drops its handle; launches run one after another, so the next step writes after it.
  void revoke();

 private:
  void own_alone();
  void replace_tail(PageRun& extra);
  bool tail_is_foreign() const;

  std::shared_ptr<PageRun> run_;
  std::shared_ptr<PageRun> source_;  // whose content the page of position length() still has to get
  std::shared_ptr<std::atomic<bool>> revoked_;
  std::shared_ptr<const SleepingKv> sleeper_;  // null while awake
  std::int64_t length_ = 0;
  std::int64_t awake_ = 0;  // while asleep: tokens in full pages
  bool computed_here_ = true;
};

}  // namespace troupe
