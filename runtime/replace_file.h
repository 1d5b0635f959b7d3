// Writes a file whole or not at all: a temporary file beside it, synced, renamed over it, its folder synced.
//
// A link is followed, an existing file keeps its mode, a new one is for its owner only. What is no regular file (a
// device, a pipe, a folder), may not be written, or is a link to nothing is refused. After an error the target is what
// it was, and no temporary file is left.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kernels/result.h"

namespace troupe {

// Takes a part of the content; false: it cannot be written, and more is of no use.
using WritePart = std::function<bool(std::string_view part)>;

// `fill` gives the content in parts.
Result<void> replace_file(const std::string& path, const std::function<void(const WritePart&)>& fill);
Result<void> replace_file(const std::string& path, std::string_view content);

}  // namespace troupe
