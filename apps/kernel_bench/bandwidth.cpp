#include "apps/kernel_bench/bandwidth.h"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <emmintrin.h>
#include <new>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace troupe::kernel_bench {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void unmap(std::byte* data, std::size_t bytes) {
  ::munmap(data, bytes);
}

// Mapped here and not by allocate_host(), which always asks for huge pages. An odd start costs the huge pages at the
// two ends.
Buffer map_pages(std::size_t bytes, Pages pages) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(memory), bytes, unmap};
}

// One load of each cache line would do for the memory, but four sums of all 64 bytes are no slower and cannot be
// skipped by a compiler.
__m128i read(const std::byte* from, const std::byte* to) {
  __m128i sum[4] = {};
  for (; from < to; from += 64) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      sum[i] = _mm_add_epi64(sum[i], _mm_load_si128(reinterpret_cast<const __m128i*>(from) + i));
    }
  }
  return _mm_add_epi64(_mm_add_epi64(sum[0], sum[1]), _mm_add_epi64(sum[2], sum[3]));
}

}  // namespace

ReadLane::ReadLane(std::size_t bytes, Pages pages)
    : memory_(map_pages((bytes + kHugePage - 1) / kHugePage * kHugePage, pages)) {
  std::fill_n(memory_.data(), memory_.size(), std::byte{1});  // untouched pages would all be one page of zeros
}

// Each reader looks at the clock itself: a thread that only watched would come too late where readers hold every core.
double ReadLane::sample(int threads) const {
  const std::size_t share = memory_.size() / static_cast<std::size_t>(threads) / 64 * 64;
  std::vector<double> began(static_cast<std::size_t>(threads)), ended(began.size());
  std::barrier start(threads);
  {
    std::vector<std::jthread> readers;
    for (std::size_t t = 0; t < began.size(); ++t) {
      readers.emplace_back([&, t] {
        const std::byte* from = memory_.data() + t * share;
        start.arrive_and_wait();
        began[t] = wall_seconds();
        __m128i sum = read(from, from + share);
        asm volatile("" : "+x"(sum));
        ended[t] = wall_seconds();
      });
    }
  }
  const double seconds = *std::ranges::max_element(ended) - *std::ranges::min_element(began);
  return static_cast<double>(share) * threads / 1e9 / seconds;
}

}  // namespace troupe::kernel_bench
