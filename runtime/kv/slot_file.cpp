#include "runtime/kv/slot_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace troupe {
namespace {

// O_TMPFILE is not known to every file system: there, a file that loses its name at once.
int open_nameless(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string path = folder + "/troupe-sleep-XXXXXX";
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

// All of it, or errno; 0 in errno: the file ends before.
template <class Move>
bool move_all(std::size_t size, Move&& move) {
  for (std::size_t at = 0; at < size;) {
    const ssize_t moved = move(at, size - at);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = 0;
    if (moved <= 0) return false;
    at += static_cast<std::size_t>(moved);
  }
  return true;
}

Error disk_error(const std::string& folder, const char* what) {
  return {ErrorCode::io,
          folder + ": cannot " + what + ": " + (errno == 0 ? "the file is too short" : std::strerror(errno))};
}

}  // namespace

Result<SlotFile> SlotFile::open(const std::string& folder, std::size_t slot_bytes, std::int64_t most_slots) {
  const int file = open_nameless(folder);
  if (file < 0) return disk_error(folder, "make a file here for sleeping sessions");
  return SlotFile(folder, file, slot_bytes, most_slots);
}

SlotFile::SlotFile(SlotFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      file_(std::exchange(other.file_, -1)),
      slot_bytes_(other.slot_bytes_),
      most_slots_(other.most_slots_),
      free_(std::move(other.free_)),
      end_(other.end_) {}

SlotFile::~SlotFile() {
  if (file_ >= 0) ::close(file_);
}

std::vector<SlotId> SlotFile::take(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<SlotId> taken;
  if (count > most_slots_ - end_ + std::ssize(free_)) return taken;
  taken.reserve(static_cast<std::size_t>(count));
  for (; count > 0; --count) {
    if (free_.empty()) {
      taken.push_back(end_++);
    } else {
      taken.push_back(free_.back());
      free_.pop_back();
    }
  }
  return taken;
}

void SlotFile::give_back(std::span<const SlotId> slots) {
  for (const SlotId slot : slots) {
    // A file system that cannot do it keeps the blocks for the slot's next holder.
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(slot) * static_cast<off_t>(slot_bytes_), static_cast<off_t>(slot_bytes_));
  }
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), slots.begin(), slots.end());
}

std::int64_t SlotFile::used() const {
  const std::lock_guard lock(mutex_);
  return end_ - std::ssize(free_);
}

Result<void> SlotFile::write(SlotId slot, const std::byte* from) const {
  const off_t begin = static_cast<off_t>(slot) * static_cast<off_t>(slot_bytes_);
  const bool written = move_all(slot_bytes_, [&](std::size_t at, std::size_t size) {
    return ::pwrite(file_, from + at, size, begin + static_cast<off_t>(at));
  });
  if (!written) return disk_error(folder_, "write a sleeping session");
  return {};
}

Result<void> SlotFile::read(SlotId slot, std::byte* to) const {
  const off_t begin = static_cast<off_t>(slot) * static_cast<off_t>(slot_bytes_);
  const bool read = move_all(slot_bytes_, [&](std::size_t at, std::size_t size) {
    return ::pread(file_, to + at, size, begin + static_cast<off_t>(at));
  });
  if (!read) return disk_error(folder_, "read a sleeping session");
  return {};
}

}  // namespace troupe
