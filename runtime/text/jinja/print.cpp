#include "runtime/text/jinja/print.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

// digits and exponent of the shortest form "d.ddde+XX": value = 0.d1d2d3… * 10^point.
struct Decimal {
  std::string digits;
  int point;
};

Decimal shortest(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  Decimal result{std::string(1, text[0]), std::atoi(std::string(text.substr(e + 1)).c_str()) + 1};
  if (e > 2) result.digits += text.substr(2, e - 2);
  return result;
}

std::string with_exponent(const Decimal& decimal) {
  std::string text = decimal.digits.substr(0, 1);
  if (decimal.digits.size() > 1) text += "." + decimal.digits.substr(1);
  const int exponent = decimal.point - 1;
  const std::string number = std::to_string(std::abs(exponent));
  return text + (exponent < 0 ? "e-" : "e+") + (number.size() < 2 ? "0" : "") + number;
}

std::string positional(const Decimal& decimal) {
  const auto size = static_cast<int>(decimal.digits.size());
  if (decimal.point <= 0) return "0." + std::string(static_cast<std::size_t>(-decimal.point), '0') + decimal.digits;
  const auto point = static_cast<std::size_t>(decimal.point);
  if (decimal.point >= size) return decimal.digits + std::string(point - decimal.digits.size(), '0') + ".0";
  return decimal.digits.substr(0, point) + "." + decimal.digits.substr(point);
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "inf";
  const Decimal decimal = shortest(std::abs(value));
  return sign + (decimal.point > -4 && decimal.point <= 16 ? positional(decimal) : with_exponent(decimal));
}

namespace {

std::string hex_escape(char32_t code) {
  constexpr char kDigits[] = "0123456789abcdef";
  const int width = code < 0x100 ? 2 : (code < 0x10000 ? 4 : 8);
  std::string text = code < 0x100 ? "\\x" : (code < 0x10000 ? "\\u" : "\\U");
  for (int i = width - 1; i >= 0; --i) text += kDigits[code >> (4 * i) & 0xF];
  return text;
}

void print_quoted_character(std::string_view bytes, char32_t code, char quote, bool is_data, TextBuilder& out) {
  if (code == static_cast<unsigned char>(quote) || code == '\\') {
    out.append("\\", is_data);
    out.append(bytes, is_data);
  } else if (code == '\n' || code == '\r' || code == '\t') {
    out.append(code == '\n' ? "\\n" : (code == '\r' ? "\\r" : "\\t"), is_data);
  } else if (!is_printable(code)) {
    out.append(hex_escape(code), is_data);
  } else {
    out.append(bytes, is_data);
  }
}

void print_quoted(const Text& text, TextBuilder& out) {
  const bool has_single = text.bytes().find('\'') != std::string::npos;
  const char quote = has_single && text.bytes().find('"') == std::string::npos ? '"' : '\'';
  const bool is_data = text.size() != 0 && text.is_data(0);
  out.append(std::string_view(&quote, 1), is_data);
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    const char32_t code = decode_character(std::string_view(text.bytes()).substr(at), size);
    print_quoted_character(std::string_view(text.bytes()).substr(at, size), code, quote, text.is_data(at), out);
  }
  out.append(std::string_view(&quote, 1), is_data);
}

void print_items(const std::vector<Value>& items, TextBuilder& out) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ", false);
    print_repr(items[i], out);
  }
}

void print_dict(const Dict& dict, TextBuilder& out) {
  out.append("{", false);
  for (std::size_t i = 0; i < dict.size(); ++i) {
    if (i > 0) out.append(", ", false);
    print_repr(dict.entries()[i].first, out);
    out.append(": ", false);
    print_repr(dict.entries()[i].second, out);
  }
  out.append("}", false);
}

void print_list(const List& list, TextBuilder& out) {
  switch (list.flavor) {
    case List::Flavor::list:
      out.append("[", false);
      break;
    case List::Flavor::tuple:
      out.append("(", false);
      break;
    case List::Flavor::keys:
      out.append("dict_keys([", false);
      break;
    case List::Flavor::values:
      out.append("dict_values([", false);
      break;
    case List::Flavor::items:
      out.append("dict_items([", false);
      break;
    case List::Flavor::range:
      fail_unsupported("printing a range (use the filter 'list')");
    case List::Flavor::iterator:
      fail_unsupported("printing an iterator (use the filter 'list')");
  }
  print_items(list.items, out);
  switch (list.flavor) {
    case List::Flavor::list:
      out.append("]", false);
      break;
    case List::Flavor::tuple:
      out.append(list.items.size() == 1 ? ",)" : ")", false);
      break;
    default:
      out.append("])", false);
  }
}

}  // namespace

void print_repr(const Value& value, TextBuilder& out) {
  const Nested nested(out.meter());
  out.meter().step();
  if (value.is_string()) return print_quoted(value.text(), out);
  if (value.is_undefined()) return out.append("Undefined", false);
  print(value, out);
}

void print(const Value& value, TextBuilder& out) {
  switch (value.kind()) {
    case Kind::undefined:
      return;
    case Kind::none:
      return out.append("None", false);
    case Kind::boolean:
      return out.append(value.boolean() ? "True" : "False", false);
    case Kind::integer:
      return out.append(std::to_string(value.integer()), false);
    case Kind::real:
      return out.append(python_float(value.real()), false);
    case Kind::big_integer:
    case Kind::string:
      return out.append(value.text());
    case Kind::list:
      return print_list(value.list(), out);
    case Kind::dict:
      return print_dict(value.dict(), out);
    default:
      fail_unsupported("printing an object of type '" + std::string(type_name(value)) + "'");
  }
}

Value to_string(const Value& value, Heap& heap) {
  if (value.is_string()) return value;
  TextBuilder out(heap.meter());
  print(value, out);
  return heap.text(out);
}

}  // namespace troupe::jinja
