// How much room there is for sleeping sessions (runtime/kv/sleep_room.h), and how much of it is in use.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace troupe {

struct SleepOptions {
  static constexpr std::uint64_t kLikeThePool = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t memory = kLikeThePool;           // bytes of host memory at most, taken when needed; 0: none
  std::string folder{};                          // where the file is made; "": there is none
  std::uint64_t disk = std::uint64_t{16} << 30;  // bytes of the file at most
};

struct SleepCounters {
  std::int64_t in_memory = 0;  // sequences
  std::int64_t on_disk = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t woken = 0;  // since the start
  std::uint64_t lost = 0;   // for want of room, or to a disk that failed
};

}  // namespace troupe
