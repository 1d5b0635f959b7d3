// A number for "the same model": equal files give equal numbers. FNV-1a over the header: metadata, names, shapes,
// types, and the first bytes of every tensor.
#pragma once

#include <cstdint>

#include "runtime/load/gguf.h"

namespace troupe {

std::uint64_t fingerprint(const Gguf& file);

}  // namespace troupe
