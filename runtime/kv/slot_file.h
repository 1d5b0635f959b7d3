// SlotFile: a file without a name, in slots of one size, for what memory has no room for.
//
// The file vanishes with the process, however that ends. A slot is taken before it is written and read, and the disk
// gets its blocks back when the slot is given back. take and give_back may be called from any thread; write and read of
// a slot are its holder's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kernels/result.h"

namespace troupe {

using SlotId = std::int64_t;

class SlotFile {
 public:
  // In `folder`, which must exist; at most `most_slots` of them.
  static Result<SlotFile> open(const std::string& folder, std::size_t slot_bytes, std::int64_t most_slots);
  SlotFile(SlotFile&& other) noexcept;
  SlotFile& operator=(SlotFile&&) = delete;
  ~SlotFile();

  // `count` slots, or none when so many are not free.
  std::vector<SlotId> take(std::int64_t count);
  void give_back(std::span<const SlotId> slots);
  std::int64_t used() const;

  // One slot's bytes. A full or broken disk is an error that names the folder.
  Result<void> write(SlotId slot, const std::byte* from) const;
  Result<void> read(SlotId slot, std::byte* to) const;

 private:
  SlotFile(std::string folder, int file, std::size_t slot_bytes, std::int64_t most_slots)
      : folder_(std::move(folder)), file_(file), slot_bytes_(slot_bytes), most_slots_(most_slots) {}

  std::string folder_;
  int file_;
  std::size_t slot_bytes_;
  std::int64_t most_slots_;
  mutable std::mutex mutex_;  // of the two below
  std::vector<SlotId> free_;  // of the slots before end_
  SlotId end_ = 0;            // so many slots were ever in use
};

}  // namespace troupe
