#include <algorithm>

#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/parser_level.h"

namespace troupe::jinja {

void Parser::parse(std::string_view source, Template& result) {
  if (source.size() > kMaxSourceBytes) {
    throw Failure(Failure::Kind::unsupported,
                  "a template of " + std::to_string(source.size()) + " bytes; the longest that is read has " +
                      std::to_string(kMaxSourceBytes),
                  1);
  }
  Parser parser(tokenize(source), result);
  for (std::string_view name : kKnownNames) parser.intern(std::string(name));
  result.body = parser.body_until({});
  if (parser.current().kind != Token::Kind::end) parser.fail("unexpected " + parser.current().describe());
}

Token Parser::next() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!current().is_symbol(symbol)) return false;
  next();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail("expected '" + std::string(symbol) + "', got " + current().describe());
}

std::string Parser::expect_any_name() {
  if (current().kind != Token::Kind::name) fail("expected a name, got " + current().describe());
  return next().text;
}

void Parser::expect(Token::Kind kind) {
  if (current().kind != kind) fail("expected " + Token{kind, "", 0}.describe() + ", got " + current().describe());
  next();
}

void Parser::fail(const std::string& message) const {
  throw Failure(Failure::Kind::syntax, message, current().line);
}

void Parser::unsupported(const std::string& construct) const {
  throw Failure(Failure::Kind::unsupported, construct, current().line);
}

Expr* Parser::expr(Expr::Kind kind, int line) {
  Expr& node = result_.exprs.emplace_back();
  node.kind = kind;
  node.line = line;
  return &node;
}

Stmt* Parser::stmt(Stmt::Kind kind, int line) {
  Stmt& node = result_.stmts.emplace_back();
  node.kind = kind;
  node.line = line;
  return &node;
}

std::string_view Parser::intern(const std::string& name, NameId* id) {
  auto [found, is_new] = ids_.try_emplace(name, static_cast<NameId>(result_.names.size()));
  if (is_new) result_.names.push_back(name);
  if (id != nullptr) *id = found->second;
  return result_.names[static_cast<std::size_t>(found->second)];
}

bool Parser::at_any(EndTags names) const {
  return std::ranges::any_of(names, [&](std::string_view name) { return current().is_name(name); });
}

Body Parser::body_until(EndTags ends) {
  const Level level(*this);
  Body body;
  while (current().kind != Token::Kind::end) {
    const int line = current().line;
    const Token token = next();
    if (token.kind == Token::Kind::data) {
      Stmt* data = stmt(Stmt::Kind::data, line);
      data->value = result_.constants.text(token.text);
      body.push_back(data);
    } else if (token.kind == Token::Kind::variable_begin) {
      Stmt* print = stmt(Stmt::Kind::print, line);
      print->expr = tuple_or_expression(true);
      expect(Token::Kind::variable_end);
      body.push_back(print);
    } else {
      if (at_any(ends)) return body;
      body.push_back(statement());
      expect(Token::Kind::block_end);
    }
  }
  if (ends.size() != 0) fail("the template ends before '{% " + std::string(*(ends.end() - 1)) + " %}'");
  return body;
}

Body Parser::body_through(std::string_view end) {
  Body body = body_until({end});
  next();
  return body;
}

const Stmt* Parser::statement() {
  if (current().kind != Token::Kind::name) fail("expected the name of a tag, got " + current().describe());
  const int line = current().line;
  const std::string tag = current().text;
  next();
  if (tag == "if") return if_statement(line);
  if (tag == "for") return for_statement(line);
  if (tag == "set") return set_statement(line);
  if (tag == "macro") return macro_statement(line);
  if (tag == "break") return loop_control(Stmt::Kind::break_, line);
  if (tag == "continue") return loop_control(Stmt::Kind::continue_, line);
  if (tag == "generation") return generation_statement(line);
  if (tag == "filter") return filter_statement(line);
  if (tag == "call") return call_statement(line);
  if (tag == "with") return with_statement(line);
  static constexpr std::string_view kOther[] = {"include", "import", "from",       "extends", "block",
                                                "print",   "do",     "autoescape", "trans",   "debug"};
  if (std::ranges::find(kOther, tag) != std::end(kOther)) {
    throw Failure(Failure::Kind::unsupported, "the tag '" + tag + "'", line);
  }
  throw Failure(Failure::Kind::syntax, "unknown or misplaced tag '" + tag + "'", line);
}

const Stmt* Parser::if_statement(int line) {
  Stmt* node = stmt(Stmt::Kind::if_, line);
  while (true) {
    const Expr* condition = tuple_or_expression(false);
    expect(Token::Kind::block_end);
    node->branches.push_back({condition, body_until({"elif", "else", "endif"})});
    if (!skip_name("elif")) break;
  }
  if (skip_name("else")) {
    expect(Token::Kind::block_end);
    node->branches.push_back({nullptr, body_until({"endif"})});
  }
  if (!skip_name("endif")) fail("expected 'endif', got " + current().describe());
  return node;
}

const Stmt* Parser::for_statement(int line) {
  Stmt* node = stmt(Stmt::Kind::for_, line);
  node->target = target(false);
  if (!skip_name("in")) fail("expected 'in', got " + current().describe());
  node->expr = tuple_or_expression(false);
  if (skip_name("if")) node->condition = expression();
  node->is_recursive = skip_name("recursive");
  if (node->is_recursive) note_tier(3);
  expect(Token::Kind::block_end);
  ++loops_;
  node->body = body_until({"else", "endfor"});
  --loops_;
  if (skip_name("else")) {
    expect(Token::Kind::block_end);
    node->else_body = body_until({"endfor"});
  }
  next();
  return node;
}

const Stmt* Parser::set_statement(int line) {
  const Expr* assigned = target(true);
  if (skip_symbol("=")) {
    Stmt* node = stmt(Stmt::Kind::set, line);
    node->target = assigned;
    node->expr = tuple_or_expression(true);
    return node;
  }
  note_tier(2);
  Stmt* node = stmt(Stmt::Kind::set_block, line);
  node->target = assigned;
  while (skip_symbol("|")) node->expr = filter(node->expr);
  expect(Token::Kind::block_end);
  node->body = body_through("endset");
  return node;
}

const Stmt* Parser::with_statement(int line) {
  note_tier(3);
  Stmt* node = stmt(Stmt::Kind::with, line);
  while (current().kind != Token::Kind::block_end) {
    if (!node->targets.empty()) expect_symbol(",");
    node->targets.push_back(target(false));
    expect_symbol("=");
    node->values.push_back(expression());
  }
  expect(Token::Kind::block_end);
  node->body = body_through("endwith");
  return node;
}

// A body that becomes a function: a break in it cannot leave a loop around it.
Body Parser::callable_body(Callable& callable, std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  callables_.push_back(&callable);
  Body body = body_through(end);
  callables_.pop_back();
  loops_ = loops;
  return body;
}

const Stmt* Parser::macro_statement(int line) {
  note_tier(2);
  Stmt* node = stmt(Stmt::Kind::macro, line);
  node->callable.name = intern(expect_any_name(), &node->id);
  node->callable.parameters = signature();
  expect(Token::Kind::block_end);
  node->callable.body = callable_body(node->callable, "endmacro");
  return node;
}

const Stmt* Parser::call_statement(int line) {
  note_tier(3);
  Stmt* node = stmt(Stmt::Kind::call, line);
  node->callable.name = "caller";
  if (current().is_symbol("(")) node->callable.parameters = signature();
  node->expr = expression();
  if (node->expr->kind != Expr::Kind::call) fail("expected a call behind 'call'");
  expect(Token::Kind::block_end);
  node->callable.body = callable_body(node->callable, "endcall");
  return node;
}

std::vector<Parameter> Parser::signature() {
  std::vector<Parameter> parameters;
  expect_symbol("(");
  while (!current().is_symbol(")")) {
    if (!parameters.empty()) expect_symbol(",");
    Parameter parameter{{}, -1, nullptr};
    parameter.name = intern(expect_any_name(), &parameter.id);
    if (skip_symbol("=")) {
      parameter.default_value = expression();
    } else if (!parameters.empty() && parameters.back().default_value != nullptr) {
      fail("a parameter without a default follows one with a default");
    }
    parameters.push_back(parameter);
  }
  next();
  return parameters;
}

const Stmt* Parser::filter_statement(int line) {
  note_tier(3);
  Stmt* node = stmt(Stmt::Kind::filter_block, line);
  node->expr = filter(nullptr);
  while (skip_symbol("|")) node->expr = filter(node->expr);
  expect(Token::Kind::block_end);
  node->body = body_through("endfilter");
  return node;
}

// transformers' mark of what an assistant wrote: rendered as if it were not there, in a scope of its own.
const Stmt* Parser::generation_statement(int line) {
  note_tier(2);
  Stmt* node = stmt(Stmt::Kind::scope, line);
  expect(Token::Kind::block_end);
  Callable none;  // transformers makes the body a function
  node->body = callable_body(none, "endgeneration");
  return node;
}

const Stmt* Parser::loop_control(Stmt::Kind kind, int line) {
  note_tier(2);
  if (loops_ == 0) fail("'break' or 'continue' outside a loop");
  return stmt(kind, line);
}

const Expr* Parser::target(bool allow_namespace) {
  const Level level(*this);
  const int line = current().line;
  const Expr* first = target_part(allow_namespace);
  if (!current().is_symbol(",")) return first;
  Expr* tuple = expr(Expr::Kind::tuple, line);
  tuple->operands.push_back(first);
  while (skip_symbol(",")) {
    if (current().is_name("in") || current().is_symbol("=") || current().is_symbol(")")) break;
    tuple->operands.push_back(target_part(allow_namespace));
  }
  return tuple;
}

const Expr* Parser::target_part(bool allow_namespace) {
  const int line = current().line;
  if (skip_symbol("(")) {
    const Expr* inner = target(allow_namespace);
    expect_symbol(")");
    return inner;
  }
  const std::string name = expect_any_name();
  static constexpr std::string_view kConstants[] = {"true", "false", "none", "True", "False", "None"};
  if (std::ranges::find(kConstants, name) != std::end(kConstants)) fail("cannot assign to '" + name + "'");
  Expr* node = name_node(name, line);
  if (allow_namespace && skip_symbol(".")) {
    node->kind = Expr::Kind::namespace_attribute;
    node->attribute = intern(expect_any_name());
  }
  return node;
}

Expr* Parser::name_node(const std::string& name, int line) {
  Expr* node = expr(Expr::Kind::name, line);
  node->name = intern(name, &node->id);
  return node;
}

}  // namespace troupe::jinja
