#include "runtime/text/jinja/json_text.h"

#include <algorithm>
#include <cmath>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/print.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

std::string unicode_escape(char32_t code) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (code >= 0x10000) {
    return unicode_escape(0xD800 + ((code - 0x10000) >> 10)) + unicode_escape(0xDC00 + ((code - 0x10000) & 0x3FF));
  }
  std::string text = "\\u";
  for (int i = 3; i >= 0; --i) text += kDigits[code >> (4 * i) & 0xF];
  return text;
}

// What stands for the character inside a JSON string; empty: itself.
std::string escape(char32_t code, bool ensure_ascii) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  return code < 0x20 || (ensure_ascii && code >= 0x80) ? unicode_escape(code) : "";
}

void print_string(const Text& text, bool ensure_ascii, TextBuilder& out) {
  const bool is_data = text.size() != 0 && text.is_data(0);
  out.append("\"", is_data);
  std::size_t plain = 0;  // from here on nothing needed an escape
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    const char32_t code = decode_character(std::string_view(text.bytes()).substr(at), size);
    const std::string escaped = escape(code, ensure_ascii);
    if (escaped.empty()) continue;
    out.append(text, plain, at);
    out.append(escaped, text.is_data(at));
    plain = at + size;
  }
  out.append(text, plain, text.size());
  out.append("\"", is_data);
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return python_float(value);
}

class Writer {
 public:
  Writer(const JsonStyle& style, TextBuilder& out) : style_(style), out_(out) {}

  void value(const Value& value) {
    const Nested nested(out_.meter());
    out_.meter().step();
    switch (value.kind()) {
      case Kind::none:
        return out_.append("null", false);
      case Kind::boolean:
        return out_.append(value.boolean() ? "true" : "false", false);
      case Kind::integer:
        return out_.append(std::to_string(value.integer()), false);
      case Kind::real:
        return out_.append(json_float(value.real()), false);
      case Kind::big_integer:
        return out_.append(value.text());
      case Kind::string:
        return print_string(value.text(), style_.ensure_ascii, out_);
      case Kind::dict:
        return dict(value.dict());
      case Kind::list:
        if (value.list().flavor <= List::Flavor::tuple) return list(value.list());
        [[fallthrough]];
      default:
        fail_runtime("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
    }
  }

 private:
  void new_line() {
    if (!style_.is_indented) return;
    out_.append("\n", false);
    out_.fill(static_cast<std::size_t>(level_), style_.indent, false);
  }

  void list(const List& list) {
    if (list.items.empty()) return out_.append("[]", false);
    out_.append("[", false);
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.append(style_.between_items, false);
      new_line();
      value(list.items[i]);
    }
    --level_;
    new_line();
    out_.append("]", false);
  }

  void dict(const Dict& dict) {
    if (dict.size() == 0) return out_.append("{}", false);
    out_.append("{", false);
    ++level_;
    bool first = true;
    for (const Dict::Entry& entry : ordered(dict)) {
      if (!first) out_.append(style_.between_items, false);
      first = false;
      new_line();
      key(entry.first);
      out_.append(style_.after_key, false);
      value(entry.second);
    }
    --level_;
    new_line();
    out_.append("}", false);
  }

  std::vector<Dict::Entry> ordered(const Dict& dict) {
    out_.meter().take(dict.size(), sizeof(Dict::Entry));
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sort_keys) {
      std::ranges::stable_sort(
          entries, [&](const Dict::Entry& a, const Dict::Entry& b) { return less(a.first, b.first, out_.meter()); });
    }
    return entries;
  }

  void key(const Value& key) {
    if (key.is_string()) return value(key);
    if (key.is(Kind::list) || key.is_undefined()) {
      fail_runtime("keys must be str, int, float, bool or None, not " + std::string(type_name(key)));
    }
    out_.append("\"", false);
    value(key);
    out_.append("\"", false);
  }

  const JsonStyle& style_;
  TextBuilder& out_;
  int level_ = 0;
};

}  // namespace

void print_json(const Value& value, const JsonStyle& style, TextBuilder& out) {
  Writer(style, out).value(value);
}

}  // namespace troupe::jinja
