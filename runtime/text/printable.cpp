#include "runtime/text/printable.h"

#include <algorithm>

#include "runtime/text/utf8.h"

namespace troupe {
namespace {

// Of one well-formed character, or of a byte that begins none.
bool is_order(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  const bool c1 = character.size() == 2 && byte == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return byte < 32 || byte == 127 || c1;
}

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t known = utf8_character(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(known, 1));
    at += character.size();
    if (at > limit) return out + "...";
    if (known == 0 || is_order(character)) {
      append_escaped(out, character);
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace troupe
