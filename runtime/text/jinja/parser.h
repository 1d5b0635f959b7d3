// Parser: tokens to a Template. One class in three files: parser_statements.cpp, parser_expressions.cpp and
// parser_postfix.cpp.
//
// Precedence, loosest first, as Jinja's own grammar has it: conditional, or, and, not, comparisons (chained), + -, ~,
// * / // %, **, unary, postfix, filters and tests. Unknown tags, filters and tests are refused here, with their line.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/lexer.h"
#include "runtime/text/jinja/template.h"

namespace troupe::jinja {

class Parser {
 public:
  // Throws Failure (syntax or unsupported), with the line.
  static void parse(std::string_view source, Template& result);

 private:
  // Bodies and expressions together. A level costs up to 6 KiB of stack under the sanitizers.
  static constexpr int kMaxNesting = 150;
  class Level;

  Parser(std::vector<Token> tokens, Template& result) : tokens_(std::move(tokens)), result_(result) {}

  // The stream of tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next();
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  std::string expect_any_name();
  void expect(Token::Kind kind);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void unsupported(const std::string& construct) const;

  // Nodes.
  Expr* expr(Expr::Kind kind, int line);
  Stmt* stmt(Stmt::Kind kind, int line);
  std::string_view intern(const std::string& name, NameId* id = nullptr);
  void note_tier(int tier) { result_.tier = std::max(result_.tier, tier); }

  // Statements.
  using EndTags = std::initializer_list<std::string_view>;
  Body body_until(EndTags ends);            // stops at the name of the end tag
  Body body_through(std::string_view end);  // takes the end tag too
  bool at_any(EndTags names) const;
  const Stmt* statement();
  const Stmt* if_statement(int line);
  const Stmt* for_statement(int line);
  const Stmt* set_statement(int line);
  const Stmt* with_statement(int line);
  const Stmt* macro_statement(int line);
  const Stmt* call_statement(int line);
  const Stmt* filter_statement(int line);
  const Stmt* generation_statement(int line);
  const Stmt* loop_control(Stmt::Kind kind, int line);
  std::vector<Parameter> signature();
  Body callable_body(Callable& callable, std::string_view end);

  // Targets of assignments.
  const Expr* target(bool allow_namespace);
  const Expr* target_part(bool allow_namespace);
  Expr* name_node(const std::string& name, int line);

  // Expressions.
  const Expr* tuple_or_expression(bool with_conditional);
  const Expr* expression(bool with_conditional = true);
  const Expr* or_expression();
  const Expr* and_expression();
  const Expr* not_expression();
  const Expr* comparison();
  bool comparison_operator(Comparison& op);
  const Expr* sum();
  const Expr* concatenation();
  const Expr* product();
  const Expr* power();
  const Expr* unary(bool with_filters);
  const Expr* primary();
  const Expr* name_or_constant();
  const Expr* string_constant();
  const Expr* number_constant();
  const Expr* list();
  const Expr* dict();
  const Expr* parenthesized();
  const Expr* postfix(const Expr* node);
  const Expr* filters_and_tests(const Expr* node);
  const Expr* attribute(const Expr* object);
  const Expr* subscript(const Expr* object);
  const Expr* slice_bound();
  const Expr* call(const Expr* callee);
  void arguments(Expr& into);
  const Expr* filter(const Expr* subject);
  const Expr* test(const Expr* subject);
  bool starts_test_argument() const;
  const Expr* binary(Arithmetic op, const Expr* a, const Expr* b, int line);
  void note_name(std::string_view name);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Template& result_;
  std::map<std::string, NameId, std::less<>> ids_;
  int nesting_ = 0;
  int loops_ = 0;                     // that a break may leave
  std::vector<Callable*> callables_;  // being parsed, outermost first
};

}  // namespace troupe::jinja
