// Interpreter: renders one template once. Made for one call and thrown away.
//
// Scopes are found at run time, from the innermost out: for, macro, call, set, filter and with bodies have their own,
// if bodies do not. Then come the context's names, then the environment's functions.
#pragma once

#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/callables.h"
#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/template.h"

namespace troupe::jinja {

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<NameId, Value>> names;
};

// The local time, broken down. Empty: templates do not find strftime_now.
using Clock = std::function<std::tm()>;

class Interpreter {
 public:
  Interpreter(const Template& source, Heap& heap, const Dict& context, const Clock& clock);

  // Everything printed goes to `out`. Throws Failure.
  void render(TextBuilder& out);

  Value evaluate(const Expr& node);
  Value call(const Value& callee, const Arguments& arguments);

  Heap& heap() { return heap_; }
  Meter& meter() { return heap_.meter(); }
  const Clock& clock() const { return clock_; }

  // Where it stands, for messages.
  int line() const { return line_; }
  std::string construct() const;

 private:
  enum class Flow { normal, break_loop, continue_loop };
  class Inside;  // a scope entered for a while
  class Into;    // output sent elsewhere for a while

  // Statements.
  Flow execute(const Body& body);
  Flow execute(const Stmt& statement);
  Flow if_statement(const Stmt& statement);
  Flow run_loop(const Stmt& statement, Scope* outside, const Value& items, int depth);
  Flow in_scope(const Body& body);
  Flow with_statement(const Stmt& statement);
  Flow block(const Stmt& statement);
  void macro_statement(const Stmt& statement);
  void call_statement(const Stmt& statement);
  std::vector<Value> chosen_items(const Stmt& statement, const Value& items);
  void assign(const Expr& target, const Value& value);

  // Expressions.
  Value operation(const Expr& node);
  Value name(const Expr& node);
  Value list(const Expr& node, List::Flavor flavor);
  Value dict(const Expr& node);
  Value slice_of(const Expr& node);
  Value call_of(const Expr& node);
  Value filtered(const Expr& node, const Value& subject);
  Value filtered_block(const Expr& node, const Value& text);
  Value tested(const Expr& node);
  Value all_or_any(const Expr& node);
  Value conditional(const Expr& node);
  Value comparison(const Expr& node);
  bool compare(Comparison op, const Value& a, const Value& b);
  Value concatenation(const Expr& node);
  Value sum(const Expr& node);
  Arguments arguments(const Expr& node);

  // Calls.
  Value call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const Macro& macro, const Arguments& arguments, Scope& scope);
  void bind_surplus(const Macro& macro, const Arguments& arguments, Scope& scope);
  Value call_loop(const Loop& loop, const Arguments& arguments);

  const Value* find(NameId id);
  void define(Scope& scope, NameId id, const Value& value);
  Scope* new_scope(Scope* parent);
  void at(const Expr& node);

  const Template& source_;
  Heap& heap_;
  const Dict& context_;
  const Clock& clock_;
  Scope* scope_ = nullptr;
  TextBuilder* out_ = nullptr;
  int line_ = 1;
  const Expr* node_ = nullptr;  // the last expression that was worked on
};

}  // namespace troupe::jinja
