// How much memory this process may use: the machine's, or its cgroup's limit when that is less.
#pragma once

#include <cstdint>

namespace troupe {

std::uint64_t memory_limit();

}  // namespace troupe
