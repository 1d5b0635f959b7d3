#include "runtime/text/jinja/interpreter.h"

#include "runtime/text/jinja/interpreter_parts.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {

Interpreter::Interpreter(const Template& source, Heap& heap, const Dict& context, const Clock& clock)
    : source_(source), heap_(heap), context_(context), clock_(clock), scope_(new_scope(nullptr)) {}

void Interpreter::render(TextBuilder& out) {
  out_ = &out;
  execute(source_.body);
}

std::string Interpreter::construct() const {
  if (node_ == nullptr) return "";
  const std::string name(node_->name);
  switch (node_->kind) {
    case Expr::Kind::filter:
      return "filter '" + name + "'";
    case Expr::Kind::test:
      return "test '" + name + "'";
    case Expr::Kind::name:
      return "name '" + name + "'";
    case Expr::Kind::attribute:
      return "attribute '" + name + "'";
    case Expr::Kind::item:
      return "subscript";
    case Expr::Kind::slice:
      return "slice";
    case Expr::Kind::call:
      return "call";
    case Expr::Kind::compare:
      return "comparison";
    case Expr::Kind::concat:
      return "operator '~'";
    case Expr::Kind::sum:
      return "operator '+'";
    case Expr::Kind::arithmetic:
    case Expr::Kind::negate:
    case Expr::Kind::plus:
      return "arithmetic";
    case Expr::Kind::dict:
      return "dict";
    default:
      return "";
  }
}

Scope* Interpreter::new_scope(Scope* parent) {
  return heap_.make(Scope{parent, {}});
}

const Value* Interpreter::find(NameId id) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    meter().step(1 + scope->names.size() / 16);
    for (auto& [name, value] : scope->names) {
      if (name == id) return &value;
    }
  }
  return nullptr;
}

void Interpreter::define(Scope& scope, NameId id, const Value& value) {
  meter().step(scope.names.size() / 16);
  for (auto& [name, old] : scope.names) {
    if (name != id) continue;
    old = value;
    return;
  }
  meter().take(sizeof(scope.names[0]));
  scope.names.emplace_back(id, value);
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Nested nested(meter());
  for (const Stmt* statement : body) {
    meter().step();
    const Flow flow = execute(*statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Stmt& statement) {
  line_ = statement.line;
  node_ = nullptr;
  switch (statement.kind) {
    case Stmt::Kind::data:
      out_->append(statement.value.text());
      break;
    case Stmt::Kind::print:
      print(evaluate(*statement.expr), *out_);
      break;
    case Stmt::Kind::if_:
      return if_statement(statement);
    case Stmt::Kind::for_:
      return run_loop(statement, scope_, evaluate(*statement.expr), 1);
    case Stmt::Kind::set:
      assign(*statement.target, evaluate(*statement.expr));
      break;
    case Stmt::Kind::set_block:
    case Stmt::Kind::filter_block:
      return block(statement);
    case Stmt::Kind::with:
      return with_statement(statement);
    case Stmt::Kind::scope:
      return in_scope(statement.body);
    case Stmt::Kind::macro:
      macro_statement(statement);
      break;
    case Stmt::Kind::call:
      call_statement(statement);
      break;
    case Stmt::Kind::break_:
      return Flow::break_loop;
    case Stmt::Kind::continue_:
      return Flow::continue_loop;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::if_statement(const Stmt& statement) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || truth(evaluate(*branch.condition))) return execute(branch.body);
  }
  return Flow::normal;
}

std::vector<Value> Interpreter::chosen_items(const Stmt& statement, const Value& items) {
  const std::span<const Value> all = iterate(items, heap_);
  meter().take(all.size(), sizeof(Value));
  if (statement.condition == nullptr) return {all.begin(), all.end()};
  std::vector<Value> chosen;
  for (const Value& item : all) {
    meter().step();
    const Inside inside(*this, new_scope(scope_));
    assign(*statement.target, item);
    if (truth(evaluate(*statement.condition))) chosen.push_back(item);
  }
  return chosen;
}

Interpreter::Flow Interpreter::run_loop(const Stmt& statement, Scope* outside, const Value& items, int depth) {
  const Inside loop_around(*this, outside);
  Loop* loop = heap_.make(Loop{chosen_items(statement, items), 0, depth, &statement, outside, false, {}});
  for (; loop->index < loop->items.size(); ++loop->index) {
    meter().step();
    const Inside iteration(*this, new_scope(outside));
    define(*scope_, kLoopName, Value(loop));
    assign(*statement.target, loop->items[loop->index]);
    if (execute(statement.body) == Flow::break_loop) break;
  }
  return loop->items.empty() ? in_scope(statement.else_body) : Flow::normal;
}

Interpreter::Flow Interpreter::in_scope(const Body& body) {
  const Inside inside(*this, new_scope(scope_));
  return execute(body);
}

Interpreter::Flow Interpreter::with_statement(const Stmt& statement) {
  std::vector<Value> values;
  for (const Expr* value : statement.values) values.push_back(evaluate(*value));
  const Inside inside(*this, new_scope(scope_));
  for (std::size_t i = 0; i < values.size(); ++i) assign(*statement.targets[i], values[i]);
  return execute(statement.body);
}

// A set block or a filter block: its body as one text, through its filters.
Interpreter::Flow Interpreter::block(const Stmt& statement) {
  TextBuilder builder(meter());
  {
    const Into into(*this, builder);
    const Flow flow = in_scope(statement.body);
    if (flow != Flow::normal) return flow;
  }
  Value text = heap_.text(builder);
  if (statement.expr != nullptr) text = filtered_block(*statement.expr, text);
  if (statement.kind == Stmt::Kind::set_block) {
    assign(*statement.target, text);
  } else {
    print(text, *out_);
  }
  return Flow::normal;
}

void Interpreter::macro_statement(const Stmt& statement) {
  const Macro* macro = heap_.make(Macro{&statement.callable, scope_});
  define(*scope_, statement.id, Value(macro));
}

void Interpreter::call_statement(const Stmt& statement) {
  const Expr& node = *statement.expr;
  const Value callee = evaluate(*node.operands[0]);
  Arguments given = arguments(node);
  const Macro* caller = heap_.make(Macro{&statement.callable, scope_});
  given.named.emplace_back("caller", Value(caller));
  at(node);
  print(call(callee, given), *out_);
}

void Interpreter::assign(const Expr& target, const Value& value) {
  if (target.kind == Expr::Kind::name) return define(*scope_, target.id, value);
  at(target);
  if (target.kind == Expr::Kind::namespace_attribute) {
    const Value space = name(target);
    if (!space.is(Value::Kind::name_space)) fail_runtime("cannot assign attribute on non-namespace object");
    return space.space().attributes.set(heap_.text(target.attribute), value, meter());
  }
  const Nested nested(meter());
  const std::span<const Value> parts = iterate(value, heap_);
  if (parts.size() != target.operands.size()) {
    fail_runtime("cannot unpack " + std::to_string(parts.size()) + " values into " +
                 std::to_string(target.operands.size()) + " names");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) assign(*target.operands[i], parts[i]);
}

}  // namespace troupe::jinja
