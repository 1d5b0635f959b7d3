// The tests of templates: value is name(arguments).
#pragma once

#include <string_view>

#include "runtime/text/jinja/callables.h"

namespace troupe::jinja {

struct Test {
  std::string_view name;
  bool (*call)(Interpreter& interpreter, const Value& subject, const Arguments& arguments);
};

// Null: unknown.
const Test* find_test(std::string_view name);

}  // namespace troupe::jinja
