#include "tests/load/allocation_meter.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

std::atomic<std::size_t> held{0}, most{0};

void* take(std::size_t size) {
  void* memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = held += malloc_usable_size(memory);
  std::size_t seen = most;
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  held -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return take(size);
}
void* operator new[](std::size_t size) {
  return take(size);
}
// The library's temporary buffers (std::stable_sort) use this one, and give back through the same delete.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return take(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace troupe::test {

AllocationMeter::AllocationMeter() : before_(held) {
  most = before_;
}

std::size_t AllocationMeter::peak() const {
  return most - before_;
}

}  // namespace troupe::test
