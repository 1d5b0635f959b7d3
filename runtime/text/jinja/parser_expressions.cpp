#include <algorithm>
#include <charconv>

#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/parser_level.h"

namespace troupe::jinja {

// One expression, or a tuple where commas stand without parentheses.
const Expr* Parser::tuple_or_expression(bool with_conditional) {
  const int line = current().line;
  const Expr* first = expression(with_conditional);
  if (!current().is_symbol(",")) return first;
  note_tier(2);
  Expr* tuple = expr(Expr::Kind::tuple, line);
  tuple->operands.push_back(first);
  while (skip_symbol(",")) {
    const Token::Kind kind = current().kind;
    if (kind == Token::Kind::variable_end || kind == Token::Kind::block_end || current().is_symbol(")")) break;
    tuple->operands.push_back(expression(with_conditional));
  }
  return tuple;
}

const Expr* Parser::expression(bool with_conditional) {
  const Level level(*this);
  const Expr* node = or_expression();
  while (with_conditional && current().is_name("if")) {
    const int line = next().line;
    Expr* conditional = expr(Expr::Kind::conditional, line);
    const Expr* condition = or_expression();
    const Expr* otherwise = skip_name("else") ? expression() : nullptr;
    conditional->operands = {node, condition, otherwise};
    node = conditional;
  }
  return node;
}

const Expr* Parser::or_expression() {
  const int line = current().line;
  const Expr* first = and_expression();
  if (!current().is_name("or")) return first;
  Expr* node = expr(Expr::Kind::or_, line);
  node->operands.push_back(first);
  while (skip_name("or")) node->operands.push_back(and_expression());
  return node;
}

const Expr* Parser::and_expression() {
  const int line = current().line;
  const Expr* first = not_expression();
  if (!current().is_name("and")) return first;
  Expr* node = expr(Expr::Kind::and_, line);
  node->operands.push_back(first);
  while (skip_name("and")) node->operands.push_back(not_expression());
  return node;
}

const Expr* Parser::not_expression() {
  if (!current().is_name("not")) return comparison();
  const Level level(*this);
  Expr* node = expr(Expr::Kind::not_, next().line);
  node->operands.push_back(not_expression());
  return node;
}

bool Parser::comparison_operator(Comparison& op) {
  static constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
      {"==", Comparison::equal},  {"!=", Comparison::not_equal},  {"<", Comparison::less},
      {">", Comparison::greater}, {"<=", Comparison::less_equal}, {">=", Comparison::greater_equal}};
  for (const auto& [symbol, meaning] : kSymbols) {
    if (!skip_symbol(symbol)) continue;
    op = meaning;
    return true;
  }
  op = Comparison::in;
  if (skip_name("in")) return true;
  if (!current().is_name("not") || !ahead().is_name("in")) return false;
  op = Comparison::not_in;
  next();
  next();
  return true;
}

const Expr* Parser::comparison() {
  const int line = current().line;
  const Expr* first = sum();
  Comparison op{};
  if (!comparison_operator(op)) return first;
  Expr* node = expr(Expr::Kind::compare, line);
  node->operands.push_back(first);
  do {
    node->comparisons.push_back(op);
    node->operands.push_back(sum());
  } while (comparison_operator(op));
  return node;
}

const Expr* Parser::binary(Arithmetic op, const Expr* a, const Expr* b, int line) {
  Expr* node = expr(Expr::Kind::arithmetic, line);
  node->op = op;
  node->operands = {a, b};
  return node;
}

const Expr* Parser::sum() {
  const Expr* node = concatenation();
  while (current().is_symbol("+") || current().is_symbol("-")) {
    const Token op = next();
    if (op.text == "-") {
      node = binary(Arithmetic::subtract, node, concatenation(), op.line);
      continue;
    }
    Expr* added = expr(Expr::Kind::sum, op.line);  // a + b + c is one node: one copy, no recursion
    added->operands = {node, concatenation()};
    while (skip_symbol("+")) added->operands.push_back(concatenation());
    node = added;
  }
  return node;
}

const Expr* Parser::concatenation() {
  const int line = current().line;
  const Expr* first = product();
  if (!current().is_symbol("~")) return first;
  note_tier(2);
  Expr* node = expr(Expr::Kind::concat, line);
  node->operands.push_back(first);
  while (skip_symbol("~")) node->operands.push_back(product());
  return node;
}

const Expr* Parser::product() {
  static constexpr std::pair<std::string_view, Arithmetic> kSymbols[] = {{"*", Arithmetic::multiply},
                                                                         {"/", Arithmetic::divide},
                                                                         {"//", Arithmetic::floor_divide},
                                                                         {"%", Arithmetic::modulo}};
  const Expr* node = power();
  while (true) {
    const auto* op = std::ranges::find_if(kSymbols, [&](const auto& s) { return current().is_symbol(s.first); });
    if (op == std::end(kSymbols)) return node;
    if (op->second != Arithmetic::modulo) note_tier(3);
    const int line = next().line;
    node = binary(op->second, node, power(), line);
  }
}

const Expr* Parser::power() {
  const Expr* node = unary(true);
  while (current().is_symbol("**")) {
    note_tier(3);
    const int line = next().line;
    node = binary(Arithmetic::power, node, unary(true), line);
  }
  return node;
}

const Expr* Parser::unary(bool with_filters) {
  const Level level(*this);
  const Expr* node = nullptr;
  if (current().is_symbol("-") || current().is_symbol("+")) {
    const Token sign = next();
    Expr* signed_node = expr(sign.text == "-" ? Expr::Kind::negate : Expr::Kind::plus, sign.line);
    signed_node->operands.push_back(unary(false));
    node = signed_node;
  } else {
    node = primary();
  }
  node = postfix(node);
  return with_filters ? filters_and_tests(node) : node;
}

const Expr* Parser::primary() {
  switch (current().kind) {
    case Token::Kind::name:
      return name_or_constant();
    case Token::Kind::string:
      return string_constant();
    case Token::Kind::integer:
    case Token::Kind::real:
      return number_constant();
    default:
      break;
  }
  if (current().is_symbol("(")) return parenthesized();
  if (current().is_symbol("[")) return list();
  if (current().is_symbol("{")) return dict();
  fail("expected an expression, got " + current().describe());
}

const Expr* Parser::name_or_constant() {
  const Token token = next();
  Expr* node = expr(Expr::Kind::constant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->value = Value(true);
  } else if (token.text == "false" || token.text == "False") {
    node->value = Value(false);
  } else if (token.text != "none" && token.text != "None") {
    note_name(token.text);
    return name_node(token.text, token.line);
  }
  return node;
}

// A macro takes more arguments than it names, or a caller, if its body speaks of them.
void Parser::note_name(std::string_view name) {
  if (name == "range") note_tier(2);
  for (Callable* callable : callables_) {
    if (name == "varargs") callable->takes_varargs = true;
    if (name == "kwargs") callable->takes_kwargs = true;
    if (name == "caller") callable->takes_caller = true;
  }
}

const Expr* Parser::string_constant() {
  Expr* node = expr(Expr::Kind::constant, current().line);
  std::string text;
  while (current().kind == Token::Kind::string) text += next().text;
  node->value = result_.constants.text(text);
  return node;
}

const Expr* Parser::number_constant() {
  const Token token = next();
  Expr* node = expr(Expr::Kind::constant, token.line);
  const char* end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::real) {
    double real = 0;
    if (std::from_chars(token.text.data(), end, real).ec != std::errc()) fail("a number out of range");
    node->value = Value(real);
    return node;
  }
  const char type = token.text.size() > 1 ? token.text[1] : '0';
  const int base = (type | 0x20) == 'x' ? 16 : ((type | 0x20) == 'o' ? 8 : ((type | 0x20) == 'b' ? 2 : 10));
  std::int64_t whole = 0;
  const auto read = std::from_chars(token.text.data() + (base == 10 ? 0 : 2), end, whole, base);
  if (read.ec == std::errc()) {
    node->value = Value(whole);
  } else if (base == 10) {
    node->value = Value::digits(&result_.constants.text(token.text).text());
  } else {
    fail("a number of more than 64 bits");
  }
  return node;
}

const Expr* Parser::list() {
  Expr* node = expr(Expr::Kind::list, next().line);
  while (!current().is_symbol("]")) {
    if (!node->operands.empty()) expect_symbol(",");
    if (current().is_symbol("]")) break;
    node->operands.push_back(expression());
  }
  next();
  return node;
}

const Expr* Parser::dict() {
  note_tier(2);
  Expr* node = expr(Expr::Kind::dict, next().line);
  while (!current().is_symbol("}")) {
    if (!node->operands.empty()) expect_symbol(",");
    if (current().is_symbol("}")) break;
    node->operands.push_back(expression());
    expect_symbol(":");
    node->operands.push_back(expression());
  }
  next();
  return node;
}

const Expr* Parser::parenthesized() {
  const int line = next().line;
  if (skip_symbol(")")) {
    note_tier(2);
    return expr(Expr::Kind::tuple, line);
  }
  const Expr* node = tuple_or_expression(true);
  expect_symbol(")");
  return node;
}

}  // namespace troupe::jinja
