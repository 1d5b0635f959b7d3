// Template: a parsed source. Immutable; rendered by an Interpreter, from many threads at once.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/meter.h"

namespace troupe::jinja {

// Names that mean something to the interpreter have the first places of Template::names.
inline constexpr std::string_view kKnownNames[] = {"loop", "caller", "varargs", "kwargs"};
inline constexpr NameId kLoopName = 0, kCallerName = 1, kVarargsName = 2, kKwargsName = 3;

struct Template {
  Template() : constants(constants_meter) {}
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  Body body;
  std::deque<std::string> names;  // by NameId; the string_views of the nodes point here
  int tier = 1;                   // of its constructs, the rarest: 1 popular templates, 2 most, 3 the long tail

  // Owners of what the nodes point to.
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  Meter constants_meter = Meter::unlimited_steps(kMaxConstantBytes);
  Heap constants;

  static constexpr std::size_t kMaxConstantBytes = std::size_t{64} << 20;
};

// Longest source that is read: known chat templates have up to 30 KB, and a node costs about 100 times its spelling.
constexpr std::size_t kMaxSourceBytes = std::size_t{256} << 10;

}  // namespace troupe::jinja
