// The expressions of the Interpreter.
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/functions.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"
#include "runtime/text/jinja/tests.h"

namespace troupe::jinja {

// Messages name the node whose operation is under way, not the last of its operands.
void Interpreter::at(const Expr& node) {
  line_ = node.line;
  node_ = &node;
}

Value Interpreter::evaluate(const Expr& node) {
  const Nested nested(meter());
  meter().step();
  at(node);
  switch (node.kind) {
    case Expr::Kind::constant:
      return node.value;
    case Expr::Kind::name:
      return name(node);
    case Expr::Kind::list:
      return list(node, List::Flavor::list);
    case Expr::Kind::tuple:
      return list(node, List::Flavor::tuple);
    case Expr::Kind::dict:
      return dict(node);
    case Expr::Kind::slice:
      return slice_of(node);
    case Expr::Kind::call:
      return call_of(node);
    case Expr::Kind::filter:
      return filtered(node, evaluate(*node.operands[0]));
    case Expr::Kind::test:
      return tested(node);
    case Expr::Kind::not_:
      return Value(!truth(evaluate(*node.operands[0])));
    case Expr::Kind::and_:
    case Expr::Kind::or_:
      return all_or_any(node);
    case Expr::Kind::conditional:
      return conditional(node);
    case Expr::Kind::compare:
      return comparison(node);
    case Expr::Kind::concat:
      return concatenation(node);
    case Expr::Kind::sum:
      return sum(node);
    default:
      return operation(node);
  }
}

Value Interpreter::operation(const Expr& node) {
  const Value first = evaluate(*node.operands[0]);
  at(node);
  if (node.kind == Expr::Kind::attribute) return attribute(first, node.name, heap_);
  if (node.kind == Expr::Kind::negate) return negative(first);
  if (node.kind == Expr::Kind::plus) return positive(first);
  const Value second = evaluate(*node.operands[1]);
  at(node);
  return node.kind == Expr::Kind::item ? item(first, second, heap_) : arithmetic(node.op, first, second, heap_);
}

Value Interpreter::name(const Expr& node) {
  if (const Value* value = find(node.id)) return *value;
  if (const Value* value = context_.find(node.name)) return *value;
  if (const Function* function = find_function(node.name, clock_ != nullptr)) return Value(function);
  return heap_.undefined("'" + std::string(node.name) + "' is undefined");
}

Value Interpreter::list(const Expr& node, List::Flavor flavor) {
  std::vector<Value> items;
  for (const Expr* operand : node.operands) items.push_back(evaluate(*operand));
  return heap_.list(std::move(items), flavor);
}

Value Interpreter::dict(const Expr& node) {
  Dict result;
  for (std::size_t i = 0; i < node.operands.size(); i += 2) {
    const Value key = evaluate(*node.operands[i]);
    const Value value = evaluate(*node.operands[i + 1]);
    at(node);
    require_hashable(key);
    result.set(key, value, meter());
  }
  return heap_.dict(std::move(result));
}

Value Interpreter::slice_of(const Expr& node) {
  const auto bound = [&](std::size_t i) { return node.operands[i] == nullptr ? Value() : evaluate(*node.operands[i]); };
  const Value object = evaluate(*node.operands[0]);
  const Value start = bound(1), stop = bound(2), step = bound(3);
  at(node);
  return slice(object, start, stop, step, heap_);
}

Arguments Interpreter::arguments(const Expr& node) {
  Arguments given;
  for (std::size_t i = 1; i < node.operands.size(); ++i) given.positional.push_back(evaluate(*node.operands[i]));
  for (const Keyword& keyword : node.keywords) given.named.emplace_back(keyword.name, evaluate(*keyword.value));
  return given;
}

Value Interpreter::call_of(const Expr& node) {
  const Value callee = evaluate(*node.operands[0]);
  const Arguments given = arguments(node);
  at(node);
  return call(callee, given);
}

Value Interpreter::filtered(const Expr& node, const Value& subject) {
  const Arguments given = arguments(node);
  at(node);
  return node.filter->call(*this, subject, given);
}

// The filters of a set or filter block: innermost first, on the block's text.
Value Interpreter::filtered_block(const Expr& node, const Value& text) {
  const Nested nested(meter());
  const Expr* inner = node.operands[0];
  return filtered(node, inner == nullptr ? text : filtered_block(*inner, text));
}

Value Interpreter::tested(const Expr& node) {
  const Value subject = evaluate(*node.operands[0]);
  const Arguments given = arguments(node);
  at(node);
  return Value(node.test->call(*this, subject, given));
}

Value Interpreter::all_or_any(const Expr& node) {
  const bool stop_at = node.kind == Expr::Kind::or_;
  Value value;
  for (const Expr* operand : node.operands) {
    value = evaluate(*operand);
    if (truth(value) == stop_at) break;
  }
  return value;
}

Value Interpreter::conditional(const Expr& node) {
  if (truth(evaluate(*node.operands[1]))) return evaluate(*node.operands[0]);
  if (node.operands[2] != nullptr) return evaluate(*node.operands[2]);
  return heap_.undefined("the inline if-expression evaluated to false and no else section was defined");
}

bool Interpreter::compare(Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::equal:
      return equals(a, b, meter());
    case Comparison::not_equal:
      return !equals(a, b, meter());
    case Comparison::less:
      return less(a, b, meter());
    case Comparison::less_equal:
      return less_or_equal(a, b, meter());
    case Comparison::greater:
      return less(b, a, meter(), ">");
    case Comparison::greater_equal:
      return less_or_equal(b, a, meter());
    case Comparison::in:
      return contains(b, a, heap_);
    case Comparison::not_in:
      return !contains(b, a, heap_);
  }
  return false;
}

Value Interpreter::comparison(const Expr& node) {
  Value left = evaluate(*node.operands[0]);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    const Value right = evaluate(*node.operands[i + 1]);
    at(node);
    if (!compare(node.comparisons[i], left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

Value Interpreter::concatenation(const Expr& node) {
  TextBuilder out(meter());
  std::vector<Value> parts;
  for (const Expr* operand : node.operands) parts.push_back(evaluate(*operand));
  at(node);
  for (const Value& part : parts) print(part, out);
  return heap_.text(out);
}

// a + b + c: what is one string so far is built in one piece.
Value Interpreter::sum(const Expr& node) {
  Value total = evaluate(*node.operands[0]);
  std::size_t i = 1;
  while (i < node.operands.size()) {
    Value next = evaluate(*node.operands[i++]);
    at(node);
    if (!total.is_string() || !next.is_string()) {
      total = arithmetic(Arithmetic::add, total, next, heap_);
      continue;
    }
    TextBuilder out(meter());
    out.append(total.text());
    out.append(next.text());
    for (; i < node.operands.size(); ++i) {
      next = evaluate(*node.operands[i]);
      at(node);
      if (!next.is_string()) arithmetic(Arithmetic::add, total, next, heap_);  // raises
      out.append(next.text());
    }
    total = heap_.text(out);
  }
  return total;
}

}  // namespace troupe::jinja
