// A token's number in its model's vocabulary.
#pragma once

#include <cstdint>

namespace troupe {

using TokenId = std::int32_t;

}  // namespace troupe
