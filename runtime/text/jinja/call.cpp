// The calls of the Interpreter: macros, call blocks, recursive loops.
#include <algorithm>

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/interpreter_parts.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Value::Kind::function:
      return callee.function().call(*this, arguments);
    case Value::Kind::method:
      return callee.method().call(*this, callee.method().self, arguments);
    case Value::Kind::macro:
      return call_macro(callee.macro(), arguments);
    case Value::Kind::loop:
      return call_loop(callee.loop(), arguments);
    case Value::Kind::undefined:
      require_defined(callee);
      [[fallthrough]];
    default:
      fail_runtime("'" + std::string(type_name(callee)) + "' object is not callable");
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Called called(meter());
  const Expr* caller_node = node_;
  const int caller_line = line_;
  TextBuilder text(meter());
  {
    const Inside inside(*this, new_scope(macro.closure));
    const Into into(*this, text);
    bind_parameters(macro, arguments, *scope_);
    bind_surplus(macro, arguments, *scope_);
    execute(macro.callable->body);
  }
  line_ = caller_line;
  node_ = caller_node;
  return heap_.text(text);
}

void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, Scope& scope) {
  const auto& parameters = macro.callable->parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto named = std::ranges::find(arguments.named, parameter.name, &Arguments::Named::first);
    if (i < arguments.positional.size()) {
      define(scope, parameter.id, arguments.positional[i]);
    } else if (named != arguments.named.end()) {
      define(scope, parameter.id, named->second);
    } else if (parameter.default_value != nullptr) {
      define(scope, parameter.id, evaluate(*parameter.default_value));
    } else {
      define(scope, parameter.id, heap_.undefined("parameter '" + std::string(parameter.name) + "' was not provided"));
    }
  }
}

// What fits no parameter: varargs, kwargs and caller, for the macros that speak of them.
void Interpreter::bind_surplus(const Macro& macro, const Arguments& arguments, Scope& scope) {
  const Callable& callable = *macro.callable;
  const std::string macro_name = "macro '" + std::string(callable.name) + "'";
  const std::size_t places = callable.parameters.size();
  std::vector<Value> varargs;
  for (std::size_t i = places; i < arguments.positional.size(); ++i) varargs.push_back(arguments.positional[i]);
  if (!varargs.empty() && !callable.takes_varargs) {
    fail_runtime(macro_name + " takes not more than " + std::to_string(places) + " argument(s)");
  }
  Dict kwargs;
  Value caller = heap_.undefined("no caller defined");
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::ranges::find(callable.parameters, name, &Parameter::name) - callable.parameters.begin();
    const bool is_parameter = place < std::ssize(callable.parameters);
    if (is_parameter && place >= std::ssize(arguments.positional)) continue;
    if (name == "caller" && callable.takes_caller) {
      caller = value;
    } else if (callable.takes_kwargs && !is_parameter) {
      kwargs.set(heap_.text(name), value, meter());
    } else {
      fail_runtime(macro_name + " takes no keyword argument '" + std::string(name) + "'");
    }
  }
  if (callable.takes_varargs) define(scope, kVarargsName, heap_.list(std::move(varargs), List::Flavor::tuple));
  if (callable.takes_kwargs) define(scope, kKwargsName, heap_.dict(std::move(kwargs)));
  if (callable.takes_caller) define(scope, kCallerName, caller);
}

// loop(items) in a recursive loop: the loop again, its output as a string.
Value Interpreter::call_loop(const Loop& loop, const Arguments& arguments) {
  if (!loop.statement->is_recursive) {
    fail_runtime("The loop must have the 'recursive' marker to be called recursively.");
  }
  const Bound bound("loop", arguments, {"iterable"}, 1);
  const Called called(meter());
  TextBuilder text(meter());
  const Into into(*this, text);
  run_loop(*loop.statement, loop.outside, bound[0], loop.depth + 1);
  return heap_.text(text);
}

}  // namespace troupe::jinja
