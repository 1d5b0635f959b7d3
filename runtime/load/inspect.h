// What a GGUF file holds, as text for people: metadata, tensor table, sizes by type.
#pragma once

#include <string>

#include "runtime/load/gguf.h"

namespace troupe {

struct InspectOptions {
  bool tensors = true;             // the whole tensor table, or only the sums
  std::size_t longest_value = 80;  // characters of a metadata value that are shown
};

std::string describe(const Gguf& file, const InspectOptions& options);

}  // namespace troupe
