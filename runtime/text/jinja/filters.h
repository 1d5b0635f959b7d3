// The filters of templates: value | name(arguments).
#pragma once

#include <string_view>

#include "runtime/text/jinja/callables.h"

namespace troupe::jinja {

struct Filter {
  std::string_view name;
  Value (*call)(Interpreter& interpreter, const Value& subject, const Arguments& arguments);
  int tier;  // Template::tier
};

// Null: unknown.
const Filter* find_filter(std::string_view name);

// By kind, each in its own file.
const Filter* find_text_filter(std::string_view name);
const Filter* find_sequence_filter(std::string_view name);
const Filter* find_choosing_filter(std::string_view name);
const Filter* find_number_filter(std::string_view name);

}  // namespace troupe::jinja
