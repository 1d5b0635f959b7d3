// PagePool: the KV memory of one engine, cut in pages of 16 tokens, with a reference count each.
//
// Thread-safe: sessions free on their own threads while the batcher reads. free() + used() == total() at every moment.
// With `poison`, a page that nobody refers to any more is filled with kPoison (a NaN in either element type): a launch
// that reads a page after its release fails visibly instead of computing with a stranger's past. For tests.
// A mistake would be to keep a page's address past the release of the last reference: go through KvCache.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/kv_layout.h"

namespace troupe {

using PageId = std::int32_t;

class PagePool {
 public:
  // `memory` holds at least pages * layout.page_bytes() bytes.
  PagePool(Buffer memory, const KvLayout& layout, std::int64_t pages, bool poison = false);

  static constexpr int kPoison = 0xff;

  const KvLayout& layout() const { return layout_; }
  std::int64_t total() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t free() const;
  std::int64_t used() const { return total() - free(); }

  // Appends `count` pages with one reference each to `out`, or none at all when fewer are free.
  bool take(std::int64_t count, std::vector<PageId>& out);
  void retain(std::span<const PageId> pages);
  void release(std::span<const PageId> pages);  // the last release frees

  std::byte* address(PageId page) const;

 private:
  Buffer memory_;
  KvLayout layout_;
  bool poison_;
  mutable std::mutex mutex_;
  std::vector<PageId> free_;
  std::vector<std::int32_t> references_;
};

}  // namespace troupe
