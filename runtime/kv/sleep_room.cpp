#include "runtime/kv/sleep_room.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/check.h"
#include "runtime/fnv.h"
#include "runtime/kv/token_row.h"

namespace troupe {
namespace {

std::uint64_t checksum(const std::byte* page, std::size_t bytes) {
  Fnv64 hash;
  hash.add(std::span(page, bytes));
  return hash.value();
}

Result<void> no_disk() {
  return Error{ErrorCode::out_of_memory, "memory has no room for the sleeping session, and no disk is given"};
}

void drop_gone(std::deque<std::weak_ptr<SleepingKv>>& sleepers) {
  std::erase_if(sleepers, [](const std::weak_ptr<SleepingKv>& sleeper) { return sleeper.expired(); });
}

}  // namespace

void SleepingKv::leave() {
  if (where_ == Where::memory) {
    ledger_->memory_bytes -= memory_.size();
    --ledger_->in_memory;
    memory_ = {};
  } else if (where_ == Where::disk) {
    ledger_->file->give_back(slots_);
    --ledger_->on_disk;
    slots_.clear();
  }
  where_ = Where::nowhere;
}

SleepRoom::SleepRoom(const SleepOptions& options, const PagePool& pool)
    : options_(options),
      layout_(pool.layout()),
      page_bytes_(layout_.page_bytes()),
      ledger_(std::make_shared<SleepLedger>()) {
  if (options_.memory == SleepOptions::kLikeThePool) {
    options_.memory = static_cast<std::uint64_t>(pool.total()) * page_bytes_;
  }
}

Result<std::shared_ptr<SleepRoom>> SleepRoom::open(const SleepOptions& options, const PagePool& pool) {
  std::shared_ptr<SleepRoom> room(new SleepRoom(options, pool));
  if (options.folder.empty()) return room;
  auto file =
      SlotFile::open(options.folder, room->page_bytes_, static_cast<std::int64_t>(options.disk / room->page_bytes_));
  if (!file) return file.error();
  room->ledger_->file.emplace(std::move(*file));
  return room;
}

std::size_t SleepRoom::bytes_of(const SleepingKv& sleeper) const {
  return static_cast<std::size_t>(pages_for(sleeper.tokens_)) * page_bytes_;
}

// The pages of the cache's tokens. In place of a last one that is not full stands a copy of its tokens alone: whoever
// else has the page may be writing behind them.
PageImage SleepRoom::committed(const KvCache& cache) const {
  PageImage image{{}, {cache.pages(), cache.pages() + pages_for(cache.length())}};
  const auto filled = static_cast<int>(cache.length() % KvLayout::kPageTokens);
  if (filled == 0) return image;
  image.memory = allocate_host(page_bytes_);
  copy_tokens(layout_, image.pages.back(), image.memory.data(), filled);
  image.pages.back() = image.memory.data();
  return image;
}

Result<std::shared_ptr<SleepingKv>> SleepRoom::put(const KvCache& cache) {
  TROUPE_CHECK(!cache.asleep() && cache.length() > 0);
  drop_gone(in_memory_);
  drop_gone(on_disk_);
  try {
    return put_pages(cache.length(), committed(cache).pages.data());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory is left to put a session to sleep"};
  }
}

Result<std::shared_ptr<SleepingKv>> SleepRoom::put_pages(std::int64_t tokens, std::byte* const* pages) {
  auto sleeper = std::make_shared<SleepingKv>(ledger_, tokens);
  const std::uint64_t bytes = bytes_of(*sleeper);
  if (bytes <= options_.memory) {
    make_room_in_memory(bytes);
    if (put_in_memory(*sleeper, pages)) {
      in_memory_.push_back(sleeper);
      return sleeper;
    }
  }
  const auto put = ledger_->file ? put_on_disk(*sleeper, pages) : no_disk();
  if (!put) return put.error();
  on_disk_.push_back(sleeper);
  return sleeper;
}

// False: the machine has not the memory that the room may use.
bool SleepRoom::put_in_memory(SleepingKv& sleeper, std::byte* const* pages) {
  try {
    sleeper.memory_ = allocate_host(bytes_of(sleeper));
  } catch (const std::bad_alloc&) {
    return false;
  }
  sleeper.where_ = SleepingKv::Where::memory;
  ledger_->memory_bytes += sleeper.memory_.size();
  ++ledger_->in_memory;
  const auto count = static_cast<std::size_t>(pages_for(sleeper.tokens_));
  for (std::size_t i = 0; i < count; ++i) std::memcpy(sleeper.memory_.data() + i * page_bytes_, pages[i], page_bytes_);
  return true;
}

Result<void> SleepRoom::put_on_disk(SleepingKv& sleeper, std::byte* const* pages) {
  auto slots = slots_for(pages_for(sleeper.tokens_));
  if (slots.empty()) return Error{ErrorCode::out_of_memory, "the file of the sleeping sessions has no room"};
  std::vector<std::uint64_t> checksums;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    checksums.push_back(checksum(pages[i], page_bytes_));
    if (auto written = ledger_->file->write(slots[i], pages[i]); !written) {
      ledger_->file->give_back(slots);
      return written.error();
    }
  }
  sleeper.leave();
  sleeper.slots_ = std::move(slots);
  sleeper.checksums_ = std::move(checksums);
  sleeper.where_ = SleepingKv::Where::disk;
  ++ledger_->on_disk;
  return {};
}

std::shared_ptr<SleepingKv> SleepRoom::take_oldest(Sleepers& sleepers) {
  while (!sleepers.empty()) {
    auto oldest = sleepers.front().lock();
    sleepers.pop_front();
    if (oldest) return oldest;
  }
  return nullptr;
}

void SleepRoom::make_room_in_memory(std::uint64_t bytes) {
  while (ledger_->memory_bytes + bytes > options_.memory) {
    const auto oldest = take_oldest(in_memory_);
    if (!oldest) return;
    move_to_disk(oldest);
  }
}

void SleepRoom::move_to_disk(const std::shared_ptr<SleepingKv>& sleeper) {
  std::vector<std::byte*> pages;
  for (std::int64_t i = 0; i < pages_for(sleeper->tokens_); ++i) {
    pages.push_back(sleeper->memory_.data() + static_cast<std::size_t>(i) * page_bytes_);
  }
  const auto moved = ledger_->file ? put_on_disk(*sleeper, pages.data()) : no_disk();
  if (moved) return on_disk_.push_back(sleeper);
  if (moved.error().code == ErrorCode::io) fault_ = moved.error();
  lose(*sleeper);
}

std::vector<SlotId> SleepRoom::slots_for(std::int64_t pages) {
  // For one that could never fit nobody is given up.
  if (static_cast<std::uint64_t>(pages) > options_.disk / page_bytes_) return {};
  for (;;) {
    auto slots = ledger_->file->take(pages);
    if (!slots.empty()) return slots;
    const auto oldest = take_oldest(on_disk_);
    if (!oldest) return {};
    lose(*oldest);
  }
}

void SleepRoom::lose(SleepingKv& sleeper) {
  sleeper.leave();
  ++ledger_->lost;
}

Result<void> SleepRoom::read_page(const SleepingKv& sleeper, std::size_t page, std::byte* to) const {
  switch (sleeper.where_) {
    case SleepingKv::Where::nowhere:
      return Error{ErrorCode::not_found, "what slept was given up for want of room"};
    case SleepingKv::Where::memory:
      std::memcpy(to, sleeper.memory_.data() + page * page_bytes_, page_bytes_);
      return {};
    case SleepingKv::Where::disk:
      break;
  }
  if (auto read = ledger_->file->read(sleeper.slots_[page], to); !read) return read;
  if (checksum(to, page_bytes_) == sleeper.checksums_[page]) return {};
  return Error{ErrorCode::io, options_.folder + ": a sleeping session was not read as it was written"};
}

Result<void> SleepRoom::wake(KvCache& cache) {
  const auto first = static_cast<std::size_t>(cache.awake() / KvLayout::kPageTokens);
  const auto end = static_cast<std::size_t>(pages_for(cache.length()));
  std::byte* const* pages = cache.bed();
  for (std::size_t i = first; i < end; ++i) {
    if (auto read = read_page(*cache.sleeper(), i, pages[i]); !read) return read;
  }
  cache.wake();
  ++ledger_->woken;
  return {};
}

Result<PageImage> SleepRoom::image(const SleepingKv& sleeper) const {
  PageImage image{allocate_host(bytes_of(sleeper)), {}};
  for (std::size_t i = 0; i * page_bytes_ < image.memory.size(); ++i) {
    image.pages.push_back(image.memory.data() + i * page_bytes_);
    if (auto read = read_page(sleeper, i, image.pages.back()); !read) return read.error();
  }
  return image;
}

SleepCounters SleepRoom::counters() const {
  SleepCounters counters;
  counters.in_memory = ledger_->in_memory;
  counters.on_disk = ledger_->on_disk;
  counters.memory_bytes = ledger_->memory_bytes;
  counters.disk_bytes = ledger_->file ? static_cast<std::uint64_t>(ledger_->file->used()) * page_bytes_ : 0;
  counters.woken = ledger_->woken;
  counters.lost = ledger_->lost;
  return counters;
}

}  // namespace troupe
