// The filter tojson as transformers defines it: Python's json.dumps, without HTML escapes.
#pragma once

#include <string>

#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool is_indented = false;
  std::string indent;  // one level
  std::string between_items = ", ";
  std::string after_key = ": ";
};

void print_json(const Value& value, const JsonStyle& style, TextBuilder& out);

}  // namespace troupe::jinja
