#include "runtime/text/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/print.h"

namespace troupe::jinja {
namespace {

// Widths and precisions beyond this are refused: no prompt has such a column.
constexpr int kMaxWidth = 10'000;

struct Conversion {
  bool left = false, zero = false, plus = false, blank = false, alternate = false;
  int width = 0;
  int precision = -1;
  char type = 's';
};

std::string in_base(std::int64_t value, int base) {
  char buffer[70];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, base).ptr;
  return std::string(buffer, end);
}

std::string fixed(double value, const Conversion& c, std::chars_format style) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string buffer(static_cast<std::size_t>(400 + kMaxWidth), '\0');
  const int precision = c.precision < 0 ? 6 : c.precision;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, style, precision).ptr;
  buffer.resize(static_cast<std::size_t>(end - buffer.data()));
  return buffer;
}

std::int64_t whole_for(const Value& value, const Conversion& c) {
  require_defined(value);
  if (value.is_whole()) return value.integer();
  const bool truncates = value.is(Value::Kind::real) && (c.type == 'd' || c.type == 'i');
  if (truncates && std::abs(value.real()) < 9e18) return static_cast<std::int64_t>(value.real());
  fail_runtime(std::string("%") + c.type + " format: a number is required, not " + std::string(type_name(value)));
}

double real_for(const Value& value) {
  require_defined(value);
  if (!value.is_number()) fail_runtime("must be real number, not " + std::string(type_name(value)));
  return value.real();
}

std::string number_text(const Value& value, const Conversion& c) {
  switch (c.type) {
    case 'd':
    case 'i':
    case 'u':
      return std::to_string(whole_for(value, c));
    case 'x':
      return in_base(whole_for(value, c), 16);
    case 'o':
      return in_base(whole_for(value, c), 8);
    case 'f':
    case 'F':
      return fixed(real_for(value), c, std::chars_format::fixed);
    case 'e':
      return fixed(real_for(value), c, std::chars_format::scientific);
    default:
      break;
  }
  std::string text = c.type == 'X' ? in_base(whole_for(value, c), 16) : "";
  if (text.empty()) fail_unsupported(std::string("the format '%") + c.type + "'");
  std::ranges::transform(text, text.begin(),
                         [](char d) { return d >= 'a' && d <= 'f' ? static_cast<char>(d - 32) : d; });
  return text;
}

void append_number(const Value& value, const Conversion& c, TextBuilder& out) {
  if (c.alternate || (c.precision >= 0 && c.type != 'f' && c.type != 'F' && c.type != 'e')) {
    fail_unsupported("this format of a number");
  }
  std::string digits = number_text(value, c);
  std::string sign = c.plus ? "+" : (c.blank ? " " : "");
  if (digits.starts_with('-')) {
    sign = "-";
    digits.erase(0, 1);
  }
  const std::size_t size = sign.size() + digits.size();
  const std::size_t missing = static_cast<std::size_t>(c.width) > size ? static_cast<std::size_t>(c.width) - size : 0;
  if (!c.left && !c.zero) out.fill(missing, " ", false);
  out.append(sign, false);
  if (!c.left && c.zero) out.fill(missing, "0", false);
  out.append(digits, false);
  if (c.left) out.fill(missing, " ", false);
}

void append_text(const Value& value, const Conversion& c, Heap& heap, TextBuilder& out) {
  TextBuilder builder(heap.meter());
  if (c.type == 'r') {
    print_repr(value, builder);
  } else {
    print(value, builder);
  }
  const Text text = builder.finish();
  std::size_t end = text.size();
  if (c.precision >= 0) end = offset_of(text.bytes(), static_cast<std::size_t>(c.precision));
  const std::size_t size = count_characters(std::string_view(text.bytes()).substr(0, end));
  const std::size_t missing = static_cast<std::size_t>(c.width) > size ? static_cast<std::size_t>(c.width) - size : 0;
  if (!c.left) out.fill(missing, " ", false);
  out.append(text, 0, end);
  if (c.left) out.fill(missing, " ", false);
}

class PercentFormat {
 public:
  PercentFormat(const Text& text, const Value& values, Heap& heap)
      : text_(text), bytes_(text.bytes()), values_(values), heap_(heap), out_(heap.meter()) {}

  Value run() {
    while (at_ < bytes_.size()) {
      const std::size_t percent = std::min(bytes_.find('%', at_), bytes_.size());
      out_.append(text_, at_, percent);
      at_ = percent;
      if (at_ < bytes_.size()) conversion();
    }
    if (is_tuple() && used_ < values_.list().items.size()) too_many();
    // What has subscripts may go unused, as a mapping may.
    const bool has_subscripts =
        values_.is(Value::Kind::dict) || values_.is(Value::Kind::list) || values_.is_undefined();
    if (!is_tuple() && !has_subscripts && used_ == 0) too_many();
    return heap_.text(out_);
  }

 private:
  [[noreturn]] static void too_many() { fail_runtime("not all arguments converted during string formatting"); }
  bool is_tuple() const { return values_.is(Value::Kind::list) && values_.list().flavor == List::Flavor::tuple; }

  char take() {
    if (at_ >= bytes_.size()) fail_runtime("incomplete format");
    return bytes_[at_++];
  }

  void conversion() {
    heap_.meter().step();
    ++at_;
    const std::string_view key = mapping_key();
    Conversion c;
    flags(c);
    c.width = number();
    if (at_ < bytes_.size() && bytes_[at_] == '.') {
      ++at_;
      c.precision = number();
    }
    c.type = take();
    if (c.type == '%') return out_.append("%", false);
    const Value value = key.empty() ? next_value() : named_value(key);
    if (c.type == 's' || c.type == 'r') return append_text(value, c, heap_, out_);
    append_number(value, c, out_);
  }

  std::string_view mapping_key() {
    if (at_ >= bytes_.size() || bytes_[at_] != '(') return {};
    const std::size_t end = bytes_.find(')', at_);
    if (end == bytes_.npos) fail_runtime("incomplete format key");
    const std::string_view key = bytes_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return key;
  }

  void flags(Conversion& c) {
    for (; at_ < bytes_.size(); ++at_) {
      switch (bytes_[at_]) {
        case '-':
          c.left = true;
          break;
        case '0':
          c.zero = true;
          break;
        case '+':
          c.plus = true;
          break;
        case ' ':
          c.blank = true;
          break;
        case '#':
          c.alternate = true;
          break;
        default:
          return;
      }
    }
  }

  int number() {
    int value = 0;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > kMaxWidth) fail_unsupported("a format wider than " + std::to_string(kMaxWidth));
    }
    return value;
  }

  Value next_value() {
    if (!is_tuple()) {
      if (used_++ > 0) fail_runtime("not enough arguments for format string");
      return values_;
    }
    if (used_ >= values_.list().items.size()) fail_runtime("not enough arguments for format string");
    return values_.list().items[used_++];
  }

  Value named_value(std::string_view key) const {
    if (!values_.is(Value::Kind::dict)) fail_runtime("format requires a mapping");
    const Value* value = values_.dict().find(key);
    if (value == nullptr) fail_runtime("the format names '" + std::string(key) + "', which is not there");
    return *value;
  }

  const Text& text_;
  std::string_view bytes_;
  const Value& values_;
  Heap& heap_;
  TextBuilder out_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
};

// The value that "{field}" stands for; `next` counts the fields without a number.
Value field_value(const std::string& field, const Arguments& arguments, std::size_t& next) {
  std::size_t index = 0;
  const auto read = std::from_chars(field.data(), field.data() + field.size(), index);
  const bool is_number = read.ec == std::errc() && read.ptr == field.data() + field.size();
  if (field.empty() || is_number) {
    if (field.empty()) index = next++;
    if (index >= arguments.positional.size())
      fail_runtime("Replacement index " + std::to_string(index) + " out of range");
    return arguments.positional[index];
  }
  if (field.find_first_of(".[:!{") != field.npos) fail_unsupported("the format field '{" + field + "}'");
  const auto named = std::ranges::find(arguments.named, field, &Arguments::Named::first);
  if (named == arguments.named.end()) fail_runtime("the format names '" + field + "', which is not given");
  return named->second;
}

}  // namespace

Value percent_format(const Text& text, const Value& values, Heap& heap) {
  return PercentFormat(text, values, heap).run();
}

Value brace_format(const Text& text, const Arguments& arguments, Heap& heap) {
  const std::string_view bytes = text.bytes();
  TextBuilder out(heap.meter());
  std::size_t at = 0, next = 0;
  while (at < bytes.size()) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(text, at, brace);
    at = brace;
    if (at >= bytes.size()) break;
    heap.meter().step();
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.append(text, at, at + 1);
      at += 2;
      continue;
    }
    const std::size_t end = bytes.find('}', at);
    if (bytes[at] == '}' || end == bytes.npos)
      fail_runtime("Single '" + std::string(1, bytes[at]) + "' in format string");
    print(field_value(std::string(bytes.substr(at + 1, end - at - 1)), arguments, next), out);
    at = end + 1;
  }
  return heap.text(out);
}

}  // namespace troupe::jinja
