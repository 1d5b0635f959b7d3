#include "runtime/load/split_name.h"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

std::optional<std::uint64_t> five_digits(std::string_view text) {
  std::uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string five_digits(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
}

}  // namespace

std::optional<SplitName> SplitName::parse(const std::string& path) {
  constexpr std::string_view kTail = "-00001-of-00003.gguf";
  if (path.size() <= kTail.size()) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kTail.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return SplitName{path.substr(0, path.size() - kTail.size()), *number, *count};
}

std::string SplitName::part(std::uint64_t wanted) const {
  return prefix + "-" + five_digits(wanted) + "-of-" + five_digits(count) + ".gguf";
}

}  // namespace troupe
