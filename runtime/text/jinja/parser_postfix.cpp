// What stands behind an operand: attributes, subscripts, calls, filters, tests.
#include <algorithm>

#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/parser_level.h"
#include "runtime/text/jinja/tests.h"

namespace troupe::jinja {

const Expr* Parser::postfix(const Expr* node) {
  while (true) {
    if (current().is_symbol(".")) {
      node = attribute(node);
    } else if (current().is_symbol("[")) {
      node = subscript(node);
    } else if (current().is_symbol("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* Parser::filters_and_tests(const Expr* node) {
  while (true) {
    if (skip_symbol("|")) {
      node = filter(node);
    } else if (current().is_name("is")) {
      node = test(node);
    } else if (current().is_symbol("(")) {
      node = call(node);
    } else {
      return node;
    }
  }
}

const Expr* Parser::attribute(const Expr* object) {
  const int line = next().line;
  if (current().kind == Token::Kind::integer) {
    Expr* node = expr(Expr::Kind::item, line);
    node->operands = {object, number_constant()};
    return node;
  }
  Expr* node = expr(Expr::Kind::attribute, line);
  const std::string name = expect_any_name();
  if (name == "get" || name == "replace" || name == "previtem" || name == "nextitem") note_tier(2);
  node->name = intern(name);
  node->operands.push_back(object);
  return node;
}

const Expr* Parser::subscript(const Expr* object) {
  const int line = next().line;
  const Expr* start = slice_bound();
  if (!current().is_symbol(":")) {
    if (start == nullptr) fail("expected an expression, got " + current().describe());
    if (current().is_symbol(",")) unsupported("a subscript with commas");
    expect_symbol("]");
    Expr* node = expr(Expr::Kind::item, line);
    node->operands = {object, start};
    return node;
  }
  Expr* node = expr(Expr::Kind::slice, line);
  next();
  const Expr* stop = slice_bound();
  const Expr* step = skip_symbol(":") ? slice_bound() : nullptr;
  node->operands = {object, start, stop, step};
  expect_symbol("]");
  return node;
}

const Expr* Parser::slice_bound() {
  return current().is_symbol(":") || current().is_symbol("]") ? nullptr : expression();
}

const Expr* Parser::call(const Expr* callee) {
  Expr* node = expr(Expr::Kind::call, current().line);
  node->operands.push_back(callee);
  arguments(*node);
  return node;
}

void Parser::arguments(Expr& into) {
  expect_symbol("(");
  bool first = true;
  while (!current().is_symbol(")")) {
    if (!first) expect_symbol(",");
    first = false;
    if (current().is_symbol(")")) break;
    if (current().is_symbol("*") || current().is_symbol("**")) unsupported("'*' in the arguments of a call");
    if (current().kind == Token::Kind::name && ahead().is_symbol("=")) {
      const std::string_view name = intern(next().text);
      next();
      into.keywords.push_back({name, expression()});
    } else {
      if (!into.keywords.empty()) fail("a positional argument behind a named one");
      into.operands.push_back(expression());
    }
  }
  next();
}

const Expr* Parser::filter(const Expr* subject) {
  const int line = current().line;
  const std::string name = expect_any_name();
  Expr* node = expr(Expr::Kind::filter, line);
  node->name = intern(name);
  node->filter = find_filter(name);
  if (node->filter == nullptr) throw Failure(Failure::Kind::unsupported, "no filter named '" + name + "'", line);
  note_tier(node->filter->tier);
  node->operands.push_back(subject);
  if (current().is_symbol("(")) arguments(*node);
  if (name == "tojson" && std::ranges::any_of(node->keywords, [](const Keyword& k) { return k.name != "indent"; })) {
    note_tier(2);
  }
  return node;
}

bool Parser::starts_test_argument() const {
  switch (current().kind) {
    case Token::Kind::name:
      return !current().is_name("else") && !current().is_name("or") && !current().is_name("and");
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::real:
      return true;
    default:
      return current().is_symbol("[") || current().is_symbol("{");
  }
}

const Expr* Parser::test(const Expr* subject) {
  const int line = next().line;
  const bool negated = skip_name("not");
  Expr* node = expr(Expr::Kind::test, line);
  const std::string name = expect_any_name();
  node->name = intern(name);
  node->test = find_test(name);
  if (node->test == nullptr) throw Failure(Failure::Kind::unsupported, "no test named '" + name + "'", line);
  node->operands.push_back(subject);
  if (current().is_symbol("(")) {
    arguments(*node);
  } else if (starts_test_argument()) {
    if (current().is_name("is")) fail("tests cannot be chained with 'is'");
    const Level level(*this);
    node->operands.push_back(postfix(primary()));
  }
  if (!negated) return node;
  Expr* inverse = expr(Expr::Kind::not_, line);
  inverse->operands.push_back(node);
  return inverse;
}

}  // namespace troupe::jinja
