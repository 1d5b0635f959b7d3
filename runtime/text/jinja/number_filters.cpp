// Filters whose result is a number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

constexpr double kTwoTo63 = 9223372036854775808.0;

// The text of a number as Python reads it: without blanks around and without single "_" between digits.
std::string number_text(std::string_view text) {
  const ByteRange kept = stripped_of_space(text, true, true);
  std::string digits(text.substr(kept.begin, kept.end - kept.begin));
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  if (digits.find('_') != digits.npos) fail_unsupported("a number with '_' in a string");
  return digits;
}

template <class Number>
bool read(const std::string& text, Number& number, int base = 10) {
  std::from_chars_result result{};
  if constexpr (std::is_integral_v<Number>) {
    result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  } else {
    result = std::from_chars(text.data(), text.data() + text.size(), number);
  }
  const bool whole = result.ptr == text.data() + text.size();
  if (whole && result.ec == std::errc::result_out_of_range) fail_unsupported("a number that is out of range");
  return whole && result.ec == std::errc();
}

Value whole_of(double value, const Value& otherwise) {
  if (std::isnan(value) || std::isinf(value)) return otherwise;
  if (std::abs(value) >= kTwoTo63) fail_unsupported("integers of more than 64 bits");
  return Value(static_cast<std::int64_t>(value));
}

Value to_int(Interpreter&, const Value& subject, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const Value otherwise = bound.value_or(0, Value(std::int64_t{0}));
  require_defined(subject);
  if (subject.is(Kind::big_integer)) return subject;
  if (subject.is_whole()) return Value(subject.integer());
  if (subject.is(Kind::real)) return whole_of(subject.real(), otherwise);
  if (!subject.is_string()) return otherwise;
  const std::string text = number_text(subject.bytes());
  const std::int64_t base = bound.whole(1, 10);
  if (base < 2 || base > 36) fail_unsupported("a number of base " + std::to_string(base));
  std::int64_t whole = 0;
  if (read(text, whole, static_cast<int>(base))) return Value(whole);
  if (base != 10 && text.size() > 1 && text[0] == '0') fail_unsupported("a number with a prefix");
  double real = 0;
  return read(text, real) ? whole_of(real, otherwise) : otherwise;
}

Value to_float(Interpreter&, const Value& subject, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  const Value otherwise = bound.value_or(0, Value(0.0));
  require_defined(subject);
  if (subject.is(Kind::big_integer)) fail_unsupported("integers of more than 64 bits");
  if (subject.is_number()) return Value(subject.real());
  double real = 0;
  return subject.is_string() && read(number_text(subject.bytes()), real) ? Value(real) : otherwise;
}

Value absolute(Interpreter&, const Value& subject, const Arguments& arguments) {
  const Bound bound("abs", arguments, {});
  require_defined(subject);
  if (subject.is_whole()) return subject.integer() < 0 ? negative(subject) : Value(subject.integer());
  if (subject.is(Kind::real)) return Value(std::abs(subject.real()));
  fail_runtime("bad operand type for abs(): '" + std::string(type_name(subject)) + "'");
}

// Python's round(): correct in decimal, ties of the exact value to even.
double rounded(double value, int digits) {
  if (!std::isfinite(value)) return value;
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, digits).ptr;
  double result = 0;
  std::from_chars(buffer, end, result);
  return result;
}

Value round(Interpreter&, const Value& subject, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  require_defined(subject);
  if (!subject.is_number()) fail_runtime("round() wants a number, not '" + std::string(type_name(subject)) + "'");
  const std::int64_t digits = bound.whole(0, 0);
  const std::string method = bound.has(1) ? bound.text(1).bytes() : "common";
  if (digits < 0 || digits > 15) fail_unsupported("this precision of round()");
  if (method == "common") {
    // Python's round() of an integer is an integer.
    return subject.is_whole() ? Value(subject.integer()) : Value(rounded(subject.real(), static_cast<int>(digits)));
  }
  if (method != "ceil" && method != "floor") fail_runtime("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = subject.real() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

constexpr Filter kNumberFilters[] = {
    {"int", to_int, 3}, {"float", to_float, 3}, {"abs", absolute, 3}, {"round", round, 3}};

}  // namespace

const Filter* find_number_filter(std::string_view name) {
  const auto* found = std::ranges::find(kNumberFilters, name, &Filter::name);
  return found == std::end(kNumberFilters) ? nullptr : found;
}

}  // namespace troupe::jinja
