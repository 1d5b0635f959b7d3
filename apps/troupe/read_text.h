// A text that the user names.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/result.h"

namespace troupe::app {

constexpr std::size_t kMostText = std::size_t{1} << 30;

// The whole of a file, or of stdin for "-". More than kMostText is refused, so an endless one (/dev/zero) is too.
// Errors name the file and the system's reason.
Result<std::string> read_text(const std::string& path_or_dash);

}  // namespace troupe::app
