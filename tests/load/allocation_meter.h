// AllocationMeter: how much the C++ heap grew at most since the meter was made. The program that links
// allocation_meter.cpp counts every operator new. Buffers of weights (mmap) are not in it.
#pragma once

#include <cstddef>

namespace troupe::test {

class AllocationMeter {
 public:
  AllocationMeter();
  std::size_t peak() const;  // bytes above what was held when the meter was made

 private:
  std::size_t before_;
};

}  // namespace troupe::test
