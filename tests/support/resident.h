// Memory that this process has.
#pragma once

#include <fstream>
#include <unistd.h>

namespace troupe::test {

inline double resident_kilobytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

// Whether it tells what the program holds: a sanitizer keeps what was freed for a while.
constexpr bool memory_counts() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

}  // namespace troupe::test
