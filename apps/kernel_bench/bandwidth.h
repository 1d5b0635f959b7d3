// Read bandwidth of the memory: what the weights of a launch can at best arrive with.
//
// A buffer well past the last-level cache, in 4 KiB or in 2 MiB pages (asked for; a system may refuse), each thread its
// own part, read in one direction.
#pragma once

#include <cstddef>

#include "apps/kernel_bench/samples.h"
#include "kernels/buffer.h"

namespace troupe::kernel_bench {

enum class Pages { small, huge };

class ReadLane {
 public:
  ReadLane(std::size_t bytes, Pages pages);

  // GB/s of one pass by `threads` threads, by the clock on the wall: waiting for memory is no time of the thread's own.
  double sample(int threads) const;

 private:
  Buffer memory_;
};

}  // namespace troupe::kernel_bench
