// What can be called: methods of values, functions, macros, and the loop object (in recursive loops).
#pragma once

#include <string_view>
#include <vector>

#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

class Interpreter;
struct Scope;

// A function of the environment: range, dict, namespace, raise_exception, strftime_now.
struct Function {
  std::string_view name;
  Value (*call)(Interpreter& interpreter, const Arguments& arguments);
};

// A method bound to its object.
struct Method {
  using Call = Value (*)(Interpreter& interpreter, const Value& self, const Arguments& arguments);
  Value self;
  Call call;
};

struct Macro {
  const Callable* callable;
  Scope* closure;  // where it was defined
};

// The variable `loop`.
struct Loop {
  std::vector<Value> items;
  std::size_t index = 0;
  int depth = 1;
  const Stmt* statement = nullptr;  // for loop(items) in a recursive loop
  Scope* outside = nullptr;
  bool has_changed = false;  // loop.changed() was asked before
  std::vector<Value> last_changed;
};

}  // namespace troupe::jinja
