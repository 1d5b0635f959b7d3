// The file names of a split model: name-00001-of-00003.gguf and its sisters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

struct SplitName {
  std::string prefix;  // path and name up to the "-00001"
  std::uint64_t number = 0;
  std::uint64_t count = 0;

  // Nothing if the path does not end in -NNNNN-of-NNNNN.gguf with 1 <= number <= count.
  static std::optional<SplitName> parse(const std::string& path);
  // The path of another part.
  std::string part(std::uint64_t wanted) const;
};

}  // namespace troupe
