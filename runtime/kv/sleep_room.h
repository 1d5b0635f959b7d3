// SleepRoom: where the keys and values of sleeping sequences lie: in memory first, and when that is full in a file.
//
// A sequence that is put to sleep is copied here, page by page, and then gives its pages back. Waking copies them into
// other pages: the same bits, nothing computed. Memory is for the youngest sleepers: for a new one the oldest go to the
// file, and where that is full, or there is none, the oldest of all are lost; a lost one computes its tokens again, to
// the same bits. The file has no name, so nothing of a session stays on the disk when the process has ended.
//
// put, wake and image copy gigabytes: they are for one thread that nobody waits for (actors/store.h). What is asleep
// belongs to whoever holds it, may be held by many, and may be let go on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/result.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/kv/sleep_options.h"
#include "runtime/kv/slot_file.h"

namespace troupe {

// What the room and those who sleep in it share: numbers, and the file that their slots are of.
struct SleepLedger {
  std::optional<SlotFile> file;
  std::atomic<std::int64_t> in_memory{0}, on_disk{0};
  std::atomic<std::uint64_t> memory_bytes{0}, woken{0}, lost{0};
};

// One sequence's copied pages. Its content is the room's business; holders only hold it.
class SleepingKv {
 public:
  SleepingKv(std::shared_ptr<SleepLedger> ledger, std::int64_t tokens) : ledger_(std::move(ledger)), tokens_(tokens) {}
  SleepingKv(const SleepingKv&) = delete;
  SleepingKv& operator=(const SleepingKv&) = delete;
  ~SleepingKv() { leave(); }

  std::int64_t tokens() const { return tokens_; }

 private:
  friend class SleepRoom;
  enum class Where : std::uint8_t { nowhere, memory, disk };
  void leave();

  std::shared_ptr<SleepLedger> ledger_;
  std::int64_t tokens_;
  Where where_ = Where::nowhere;
  Buffer memory_;
  std::vector<SlotId> slots_;             // of its pages, in order
  std::vector<std::uint64_t> checksums_;  // Fnv64 of each page, while it is on the disk
};

// Pages, some or all of them in memory of their own.
struct PageImage {
  Buffer memory;
  std::vector<std::byte*> pages;
};

class SleepRoom {
 public:
  // For sequences of this pool. An error when the folder takes no file.
  static Result<std::shared_ptr<SleepRoom>> open(const SleepOptions& options, const PagePool& pool);

  // False: nobody can sleep here.
  bool has_room() const { return options_.memory > 0 || ledger_->file; }
  // A copy of what `cache`, awake and not empty, has in pages. An error when there is no room for it, or the disk
  // fails.
  Result<std::shared_ptr<SleepingKv>> put(const KvCache& cache);
  // Wakes a cache that is asleep and has pages for all its tokens. After an error it still sleeps.
  Result<void> wake(KvCache& cache);
  // `not_found`: the sleeper was lost.
  Result<PageImage> image(const SleepingKv& sleeper) const;
  // The disk's last error that put() met while it made room; the sleeper that it cost is lost.
  std::optional<Error> take_fault() { return std::exchange(fault_, std::nullopt); }
  SleepCounters counters() const;  // from any thread

 private:
  using Sleepers = std::deque<std::weak_ptr<SleepingKv>>;  // the oldest first

  SleepRoom(const SleepOptions& options, const PagePool& pool);
  PageImage committed(const KvCache& cache) const;
  Result<std::shared_ptr<SleepingKv>> put_pages(std::int64_t tokens, std::byte* const* pages);
  bool put_in_memory(SleepingKv& sleeper, std::byte* const* pages);
  Result<void> put_on_disk(SleepingKv& sleeper, std::byte* const* pages);
  void make_room_in_memory(std::uint64_t bytes);
  std::vector<SlotId> slots_for(std::int64_t pages);
  void move_to_disk(const std::shared_ptr<SleepingKv>& sleeper);
  void lose(SleepingKv& sleeper);
  Result<void> read_page(const SleepingKv& sleeper, std::size_t page, std::byte* to) const;
  std::size_t bytes_of(const SleepingKv& sleeper) const;
  static std::shared_ptr<SleepingKv> take_oldest(Sleepers& sleepers);

  SleepOptions options_;
  KvLayout layout_;
  std::size_t page_bytes_;
  std::shared_ptr<SleepLedger> ledger_;
  Sleepers in_memory_, on_disk_;
  std::optional<Error> fault_;
};

}  // namespace troupe
