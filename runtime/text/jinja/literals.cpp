#include "runtime/text/jinja/literals.h"

#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/failure.h"

namespace troupe::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Digits of `base` with single "_" between them, from `at`; returns where they end (at: there are none).
std::size_t digits_end(std::string_view text, std::size_t at, int base, bool leading_underscore = false) {
  std::size_t end = at;
  while (end < text.size()) {
    const bool underscore = text[end] == '_' && (end > at || leading_underscore);
    const std::size_t digit = end + (underscore ? 1 : 0);
    if (digit >= text.size() || digit_value(text[digit]) >= base) break;
    end = digit + 1;
  }
  return end;
}

}  // namespace

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

std::size_t integer_size(std::string_view text) {
  if (text.empty() || !is_digit(text[0])) return 0;
  if (text[0] != '0') return digits_end(text, 0, 10);
  if (text.size() > 2) {
    const char type = static_cast<char>(text[1] | 0x20);
    const int base = type == 'x' ? 16 : (type == 'o' ? 8 : (type == 'b' ? 2 : 0));
    const std::size_t end = base == 0 ? 2 : digits_end(text, 2, base, true);
    if (end > 2) return end;
  }
  return digits_end(text, 0, 1);  // 0, 00, 0_0
}

std::size_t real_size(std::string_view text) {
  if (text.empty() || !is_digit(text[0])) return 0;
  const std::size_t whole = digits_end(text, 0, 10);
  std::size_t end = whole;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = digits_end(text, end + 1, 10);
    if (fraction > end + 1) end = fraction;
  }
  if (end < text.size() && (text[end] | 0x20) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const std::size_t after = digits_end(text, exponent, 10);
    if (after > exponent) end = after;
  }
  return end == whole ? 0 : end;
}

std::size_t string_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return 0;
}

namespace {

class Unescape {
 public:
  Unescape(std::string_view body, int line) : body_(body), line_(line) {}

  std::string run() {
    while (at_ < body_.size()) {
      const char c = body_[at_++];
      if (c == '\\' && at_ < body_.size()) {
        escape(body_[at_++]);
      } else {
        out_ += c;
      }
    }
    return std::move(out_);
  }

 private:
  void escape(char c) {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t simple = kFrom.find(c); simple != kFrom.npos) {
      out_ += kTo[simple];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code_point(number(16, c == 'x' ? 2 : (c == 'u' ? 4 : 8), true));
    } else if (c >= '0' && c <= '7') {
      --at_;
      code_point(number(8, 3, false));
    } else if (c == 'N') {
      fail("the escape \\N is not supported: write the character itself");
    } else if (c != '\n') {  // an escaped newline is nothing
      (out_ += '\\') += c;
    }
  }

  char32_t number(int base, int most, bool exactly) {
    char32_t code = 0;
    int count = 0;
    for (; count < most && at_ < body_.size() && digit_value(body_[at_]) < base; ++count, ++at_) {
      code = code * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(body_[at_]));
    }
    if (exactly && count < most) fail("a string has an escape with too few digits");
    return code;
  }

  void code_point(char32_t code) {
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) fail("a string has an escape that is no character");
    encode_character(code, out_);
  }

  [[noreturn]] void fail(const std::string& message) const { throw Failure(Failure::Kind::syntax, message, line_); }

  std::string_view body_;
  int line_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string unescaped(std::string_view body, int line) {
  return Unescape(body, line).run();
}

}  // namespace troupe::jinja
