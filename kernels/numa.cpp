#include "kernels/numa.h"

#include <charconv>
#include <fstream>
#include <linux/mempolicy.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe {
namespace {

constexpr int kMostNodes = 1024;  // MAX_NUMNODES of the kernel's largest configuration
constexpr int kWordBits = 8 * sizeof(unsigned long);

// Reads a number from the front of `text`; false when there is none.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::vector<int> parse_id_list(std::string_view text) {
  std::vector<int> ids;
  while (!text.empty()) {
    int first = 0, last = 0;
    if (!take_number(text, first)) return {};
    last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_number(text, last) || last < first || last >= kMostNodes) return {};
    }
    for (int id = first; id <= last; ++id) ids.push_back(id);
    if (!text.empty() && text.front() != ',') return {};
    if (!text.empty()) text.remove_prefix(1);
  }
  return ids;
}

std::vector<int> memory_nodes() {
  constexpr std::string_view kKey = "Mems_allowed_list:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t at = line.find_first_not_of(" \t", kKey.size());
    return at == std::string::npos ? std::vector<int>() : parse_id_list(std::string_view(line).substr(at));
  }
  return {};
}

bool interleave(std::byte* data, std::size_t bytes, std::span<const int> nodes) {
  unsigned long mask[kMostNodes / kWordBits] = {};
  for (int node : nodes) {
    if (node < 0 || node >= kMostNodes) return false;
    mask[node / kWordBits] |= 1ul << (node % kWordBits);
  }
  // The kernel reads one bit less than it is told of.
  return ::syscall(SYS_mbind, data, bytes, MPOL_INTERLEAVE, mask, kMostNodes + 1, 0) == 0;
}

}  // namespace troupe
