// Lexer: template source to tokens, with the whitespace rules of trim_blocks and lstrip_blocks.
//
// Source: Jinja's template designer documentation, "Whitespace Control". A tag takes the newline behind it and, if it
// stands alone on its line, the blanks before it; "-" takes all whitespace on its side, "+" none. One newline at the
// end of the source goes. "\r\n" and "\r" become "\n".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::jinja {

struct Token {
  enum class Kind {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    symbol,
    end,
  };
  Kind kind = Kind::end;
  std::string text;  // data and strings: their value; numbers: their digits without "_"; the others: as written
  int line = 1;

  bool is(Kind k, std::string_view t) const { return kind == k && text == t; }
  bool is_name(std::string_view name) const { return is(Kind::name, name); }
  bool is_symbol(std::string_view symbol) const { return is(Kind::symbol, symbol); }
  // For messages: "'endif'", "the end of the statement".
  std::string describe() const;
};

// The last token is Kind::end. Throws Failure (syntax) with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace troupe::jinja
