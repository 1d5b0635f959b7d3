// Characters (code points) of a Text, and what Python knows about them.
//
// Strings are held as UTF-8 and indexed by code point, as Python's are. A byte that is not part of a well-formed
// character counts as one character of its own and stays what it is (Python's "surrogateescape"), so that no operation
// loses bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/marked_text.h"

namespace troupe::jinja {

struct Character {
  char32_t code;  // 0xDC80 to 0xDCFF: a stray byte 0x80 to 0xFF
  bool is_data;
};

// The code point at the front of non-empty `text`; its length in bytes goes to `length`.
char32_t decode_character(std::string_view text, std::size_t& length);
void encode_character(char32_t code, std::string& out);

std::size_t count_characters(std::string_view text);
// The byte offset of character number `index`; text.size() if there are not as many.
std::size_t offset_of(std::string_view text, std::size_t index);

std::vector<Character> characters(const Text& text, Meter& meter);
void append(TextBuilder& out, Character character);

// str.isspace() of one character.
bool is_space(char32_t code);
bool is_printable(char32_t code);
bool is_ascii(std::string_view text);

// The range of `text` that stays when characters of `set` (empty: whitespace) are taken from its ends.
struct ByteRange {
  std::size_t begin, end;
};
ByteRange stripped(std::string_view text, std::string_view set, bool left, bool right);
ByteRange stripped_of_space(std::string_view text, bool left, bool right);

// Case mappings of whole strings (str.upper, str.lower, str.title, str.capitalize, str.swapcase). title and capitalize
// refuse the 135 letters whose title form is not their upper form.
Text to_upper(const Text& text, Meter& meter);
Text to_lower(const Text& text, Meter& meter);
Text to_title(const Text& text, Meter& meter);
Text capitalized(const Text& text, Meter& meter);
Text swapped_case(const Text& text, Meter& meter);
bool is_cased(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);

}  // namespace troupe::jinja
