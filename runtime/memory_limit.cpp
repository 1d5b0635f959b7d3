#include "runtime/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>

namespace troupe {
namespace {

void lower_to(std::uint64_t& limit, const std::string& path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);  // "max" and absent files change nothing
}

// The path of this process's group in the unified hierarchy: the line "0::/path".
std::string unified_group() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

}  // namespace

std::uint64_t memory_limit() {
  std::uint64_t limit =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // A group is bound by its own limit and by those of all groups above it.
  for (std::string group = unified_group();; group.erase(group.rfind('/'))) {
    lower_to(limit, "/sys/fs/cgroup" + group + "/memory.max");
    if (group.rfind('/') == std::string::npos) break;
  }
  lower_to(limit, "/sys/fs/cgroup/memory/memory.limit_in_bytes");  // version 1
  return limit;
}

}  // namespace troupe
