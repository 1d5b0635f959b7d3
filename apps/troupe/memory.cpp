#include "apps/troupe/memory.h"

#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe::app {

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double all_pages = 0.0, resident_pages = 0.0;
  if (!(file >> all_pages >> resident_pages)) return 0.0;
  return resident_pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double peak_resident_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace troupe::app
