// UTF-8 as the text side needs it: where a valid prefix ends, and a stream that never cuts a character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// Bytes of the well-formed character at the front of `text` (1 to 4); 0 if there is none.
std::size_t utf8_character(std::string_view text);
// Whether `text` could become a well-formed character with more bytes behind it. False for empty text.
bool utf8_incomplete(std::string_view text);
// Bytes from the front that are well-formed UTF-8.
std::size_t utf8_valid_prefix(std::string_view text);

// Bytes in, whole characters out. What can never become a character comes out as U+FFFD, one a maximal bad sequence.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  // The end: an unfinished character becomes U+FFFD.
  std::string flush();

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace troupe
