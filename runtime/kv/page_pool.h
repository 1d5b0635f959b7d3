// PagePool: the KV memory of one engine, cut in pages of 16 tokens, with a reference count each.
//
// A reference keeps a page alive. A share does too, and says that its holder relies on the page's first positions: the
// page's writer, the sequence that took it, must not change those any more. So many sequences can read one page, and
// one may still fill the rest of it.
//
// Thread-safe: sessions free on their own threads while the batcher reads. free() + used() == total() at every moment.
// With `poison`, a page that nobody refers to any more is filled with kPoison (a NaN in either float type, and as a
// scale of i8): a launch that reads a page after its release fails visibly instead of computing with a stranger's past.
// For tests.
// A mistake would be to keep a page's address past the release of the last reference: go through KvCache.
//
// Every used page has one payer at any time: who took it, and those who share it pay nothing. When the payer lets go
// while others hold on, the house pays. So what all have paid is what the used pages have cost, to the nanosecond.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/kv_layout.h"
#include "runtime/kv/page_time.h"
#include "runtime/time.h"

namespace troupe {

using PageId = std::int32_t;

// Who pays for pages; see PageAccount. Changed by the pool alone. Null stands for the house.
struct PagePayer {
  PageMeter meter{};
  bool ended = false;
};

class PagePool {
 public:
  // `memory` holds at least pages * layout.page_bytes() bytes.
  PagePool(Buffer memory, const KvLayout& layout, std::int64_t pages, bool poison = false);

  static constexpr int kPoison = 0xff;

  const KvLayout& layout() const { return layout_; }
  std::int64_t total() const { return static_cast<std::int64_t>(holders_.size()); }
  std::int64_t free() const;
  std::int64_t used() const { return total() - free(); }

  // Appends `count` pages with one reference each to `out`, or none at all when fewer are free.
  bool take(std::int64_t count, std::vector<PageId>& out, const std::shared_ptr<PagePayer>& payer = nullptr);
  void retain(std::span<const PageId> pages);
  void release(std::span<const PageId> pages);  // the last release frees

  // References that rely on a page's positions below `filled` (1 to 16). Ended by unshare, not by release.
  void share(PageId page, int filled);
  void share(std::span<const PageId> pages);  // full ones
  void unshare(std::span<const PageId> pages);
  // Whether the page's writer may write from `position` (0 to 15) of the page on. Once true it stays so until the
  // writer itself gives a share away.
  bool writable(PageId page, int position) const;
  // Whether the page has this one holder.
  bool alone(PageId page) const;

  // Time is read here from now on, once an operation, under the pool's lock; it goes on from where it stands. Nothing:
  // the steady clock, as in the beginning.
  void use_clock(std::function<TimePoint()> clock);
  // From now on `payer` pays for these pages, which are not shares.
  void charge(std::span<const PageId> pages, const std::shared_ptr<PagePayer>& payer);
  PageTime paid_by(const PagePayer& payer) const;
  void close_account(PagePayer& payer);
  PageBill bill() const;

  std::byte* address(PageId page) const;
  // Between launches only: the launch thread is the one that writes pages.
  void copy(PageId from, PageId to);

 private:
  struct Holders {
    std::int32_t references = 0;  // shares count too
    std::int32_t shares = 0;
    std::int32_t frozen = 0;  // positions that a share relies on
    std::shared_ptr<PagePayer> payer{};
  };
  using Age = std::chrono::nanoseconds;

  Holders& holders(PageId page) { return holders_[static_cast<std::size_t>(page)]; }
  void add_share(PageId page, int filled);
  void give_up(PageId page, Age now);
  Age age() const { return age_ + (clock_() - read_); }
  void pay(PagePayer* payer, std::int64_t pages, Age now);
  void change_payer(Holders& page, const std::shared_ptr<PagePayer>& payer, Age now);

  Buffer memory_;
  KvLayout layout_;
  bool poison_;
  mutable std::mutex mutex_;
  std::vector<PageId> free_;
  std::vector<Holders> holders_;

  std::function<TimePoint()> clock_ = std::chrono::steady_clock::now;
  TimePoint read_ = clock_();
  Age age_{0};  // when the clock was read_
  PageMeter used_, house_, living_, ended_;
};

}  // namespace troupe
