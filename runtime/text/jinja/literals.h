// The spelling of numbers, names and strings inside tags.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::jinja {

bool is_name_character(char c);

// Bytes of the literal at the front of `text`; 0 if there is none.
std::size_t integer_size(std::string_view text);  // 10, 1_000, 0x1f, 0b11, 0o17
std::size_t real_size(std::string_view text);     // 1.5, 1e3, 1.5e-3
std::size_t string_size(std::string_view text);   // quotes included

// The value of a string's body: Python's escapes. Throws Failure (syntax) with `line`.
std::string unescaped(std::string_view body, int line);

}  // namespace troupe::jinja
