// A text from outside (a model file, a chat, an argument) as one line that a terminal only shows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// Control characters (newlines too, and C1 ones in UTF-8) and bytes that are not UTF-8 come out as \xNN: none of them
// may reach a terminal, which takes them for orders. Of a longer text the whole characters in its first `limit` bytes
// are shown, then "...".
std::string printable(std::string_view text, std::size_t limit);

}  // namespace troupe
