#include "kernels/buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace troupe {
namespace {

constexpr std::size_t kCacheLine = 64;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void release_small(std::byte* data, std::size_t) {
  std::free(data);
}
void release_mapped(std::byte* data, std::size_t bytes) {
  ::munmap(data, round_up(bytes, kHugePage));
}

Buffer allocate_small(std::size_t bytes) {
  const std::size_t padded = round_up(bytes == 0 ? 1 : bytes, kCacheLine);
  void* memory = std::aligned_alloc(kCacheLine, padded);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, padded);
  return {static_cast<std::byte*>(memory), bytes, release_small};
}

// mmap gives 4 KiB alignment: map one huge page more and give the two ends back.
Buffer allocate_mapped(std::size_t bytes) {
  const std::size_t padded = round_up(bytes, kHugePage);
  void* raw = ::mmap(nullptr, padded + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(raw);
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (head != 0) ::munmap(begin, head);
  if (head != kHugePage) ::munmap(begin + head + padded, kHugePage - head);
  ::madvise(begin + head, padded, MADV_HUGEPAGE);
  return {begin + head, bytes, release_mapped};
}

}  // namespace

Buffer allocate_host(std::size_t bytes) {
  return bytes < kHugePage ? allocate_small(bytes) : allocate_mapped(bytes);
}

}  // namespace troupe
