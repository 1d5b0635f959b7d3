#include "runtime/text/jinja/lexer.h"

#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/failure.h"
#include "runtime/text/jinja/literals.h"

namespace troupe::jinja {
namespace {

std::string unified_newlines(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool carriage = source[i] == '\r';
    if (carriage && i + 1 < source.size() && source[i + 1] == '\n') continue;
    result += carriage ? '\n' : source[i];
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(unified_newlines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) next_part();
    push(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw Failure(Failure::Kind::syntax, message, line_); }

  void push(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  // Takes `count` bytes from the front.
  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    line_ += static_cast<int>(std::ranges::count(taken, '\n'));
    if (!taken.empty()) line_starting_ = taken.back() == '\n';
    rest_.remove_prefix(count);
    return taken;
  }
  void take_space() { take(stripped_of_space(rest_, true, false).begin); }

  static std::size_t tag_position(std::string_view text) {
    for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
      if (at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '%' || text[at + 1] == '#')) return at;
    }
    return text.npos;
  }

  // Text up to the next tag, and the tag.
  void next_part() {
    const std::size_t at = tag_position(rest_);
    if (at == rest_.npos) {
      const int line = line_;
      tokens_.push_back({Token::Kind::data, std::string(take(rest_.size())), line});
      return;
    }
    const char type = rest_[at + 1];
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : ' ';
    const bool starts_line = line_starting_;
    const int line = line_;
    const std::string_view text = take(at);
    const std::string_view kept = left_of_tag(text, sign, type != '{', starts_line);
    if (!kept.empty()) tokens_.push_back({Token::Kind::data, std::string(kept), line});
    take(sign == '-' || sign == '+' ? 3 : 2);
    if (type == '#') return comment();
    if (type == '%' && is_raw_tag()) return raw();
    push(type == '{' ? Token::Kind::variable_begin : Token::Kind::block_begin, "");
    inside_tag(type == '{' ? '}' : '%');
  }

  static std::string_view left_of_tag(std::string_view text, char sign, bool is_block, bool starts_line) {
    if (sign == '-') return text.substr(0, stripped_of_space(text, false, true).end);
    if (sign == '+' || !is_block) return text;
    const std::size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line_begin == 0 && !starts_line) return text;
    const std::string_view line = text.substr(line_begin);
    return stripped_of_space(line, true, false).begin == line.size() ? text.substr(0, line_begin) : text;
  }

  // Takes the end of a tag, "%}" or "#}", if it is at the front, with what it takes behind it.
  bool take_end(char type, bool trims_newline) {
    const bool signed_end = rest_.size() >= 3 && (rest_[0] == '-' || (rest_[0] == '+' && type != '}'));
    const std::string_view end = rest_.substr(signed_end ? 1 : 0);
    if (end.size() < 2 || end[0] != type || end[1] != '}') return false;
    const char sign = signed_end ? rest_[0] : ' ';
    take(signed_end ? 3 : 2);
    if (sign == '-') take_space();
    if (sign == ' ' && trims_newline && rest_.starts_with('\n')) take(1);
    return true;
  }

  void comment() {
    const std::size_t end = rest_.find("#}");
    if (end == rest_.npos) fail("a comment is not closed with '#}'");
    const bool is_signed = end > 0 && (rest_[end - 1] == '-' || rest_[end - 1] == '+');
    take(is_signed ? end - 1 : end);
    take_end('#', true);
  }

  // Behind "{%" and its sign: is this "raw %}"?
  bool is_raw_tag() const {
    std::string_view tag = rest_.substr(stripped_of_space(rest_, true, false).begin);
    if (!tag.starts_with("raw")) return false;
    tag.remove_prefix(3);
    tag.remove_prefix(stripped_of_space(tag, true, false).begin);
    return tag.starts_with("%}") || tag.starts_with("-%}");
  }

  void raw() {
    take_space();
    take(3);
    take_space();
    take_end('%', false);
    for (std::size_t at = rest_.find("{%"); at != rest_.npos; at = rest_.find("{%", at + 2)) {
      if (take_raw_until(at)) return;
    }
    fail("a raw block is not closed with '{% endraw %}'");
  }

  bool take_raw_until(std::size_t at) {
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : ' ';
    const std::size_t tag_size = sign == '-' || sign == '+' ? 3 : 2;
    std::string_view tag = rest_.substr(at + tag_size);
    tag.remove_prefix(stripped_of_space(tag, true, false).begin);
    if (!tag.starts_with("endraw")) return false;
    tag.remove_prefix(6);
    tag.remove_prefix(stripped_of_space(tag, true, false).begin);
    if (!tag.starts_with("%}") && !tag.starts_with("-%}") && !tag.starts_with("+%}")) return false;
    const bool starts_line = line_starting_;
    const int line = line_;
    const std::string_view text = rest_.substr(0, at);
    const std::string kept(left_of_tag(text, sign, true, starts_line));
    take(rest_.size() - tag.size());
    take_end('%', true);
    if (!kept.empty()) tokens_.push_back({Token::Kind::data, kept, line});
    return true;
  }

  // Tokens up to the end of the tag; inside brackets its end mark is only brackets.
  void inside_tag(char type) {
    std::string open;
    while (true) {
      take_space();
      if (rest_.empty()) fail("the template ends inside a tag");
      if (open.empty() && take_end(type, type == '%')) break;
      one_token(open);
    }
    push(type == '%' ? Token::Kind::block_end : Token::Kind::variable_end, "");
  }

  void one_token(std::string& open) {
    const char c = rest_[0];
    const bool after_dot = !tokens_.empty() && tokens_.back().is_symbol(".");  // a.0.1 are two indices
    if (const std::size_t size = after_dot ? 0 : real_size(rest_)) return number(Token::Kind::real, size);
    if (const std::size_t size = integer_size(rest_)) return number(Token::Kind::integer, size);
    if (is_name_character(c)) {
      const auto end = std::ranges::find_if_not(rest_, is_name_character);
      return push(Token::Kind::name, std::string(take(static_cast<std::size_t>(end - rest_.begin()))));
    }
    if (c == '"' || c == '\'') return string_literal();
    symbol(open);
  }

  void number(Token::Kind kind, std::size_t size) {
    std::string digits(take(size));
    std::erase(digits, '_');
    push(kind, std::move(digits));
  }

  void string_literal() {
    const std::size_t size = string_size(rest_);
    if (size == 0) fail("a string is not closed");
    const int line = line_;
    const std::string_view body = take(size).substr(1, size - 2);
    tokens_.push_back({Token::Kind::string, unescaped(body, line), line});
  }

  void symbol(std::string& open) {
    static constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
    const auto* match = std::ranges::find_if(kLong, [&](std::string_view s) { return rest_.starts_with(s); });
    const std::size_t size = match != std::end(kLong) ? 2 : 1;
    if (size == 1 && kShort.find(rest_[0]) == kShort.npos) fail("unexpected character " + quoted_front());
    const char c = rest_[0];
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') close(c, open);
    push(Token::Kind::symbol, std::string(take(size)));
  }

  void close(char c, std::string& open) const {
    if (open.empty()) fail(std::string("unexpected '") + c + "'");
    if (open.back() != c) fail(std::string("unexpected '") + c + "', expected '" + open.back() + "'");
    open.pop_back();
  }

  std::string quoted_front() const {
    std::size_t size = 0;
    decode_character(rest_, size);
    return "'" + std::string(rest_.substr(0, size)) + "'";
  }

  std::string source_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool line_starting_ = true;  // the last thing taken ended a line
};

}  // namespace

std::string Token::describe() const {
  switch (kind) {
    case Kind::data:
      return "text";
    case Kind::variable_begin:
      return "'{{'";
    case Kind::variable_end:
      return "the end of the print statement";
    case Kind::block_begin:
      return "'{%'";
    case Kind::block_end:
      return "the end of the statement";
    case Kind::string:
      return "a string";
    case Kind::end:
      return "the end of the template";
    default:
      return "'" + text + "'";
  }
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace troupe::jinja
