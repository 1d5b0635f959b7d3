// The tree of a template. Nodes belong to the Template (template.h); all of them are freed flat.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

struct Expr;
struct Stmt;
struct Filter;  // filters.h
struct Test;    // tests.h

// A name of the template, as its place in Template::names.
using NameId = int;

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Keyword {
  std::string_view name;
  const Expr* value;
};

struct Expr {
  enum class Kind {
    constant,             // value
    name,                 // name, id
    list,                 // operands
    tuple,                // operands
    dict,                 // operands: key, value, key, value…
    attribute,            // operands[0].name
    item,                 // operands[0][operands[1]]
    slice,                // operands[0][1:2:3]; null: left out
    call,                 // operands[0](1…, keywords)
    filter,               // operands[0] | filter(1…, keywords); operands[0] null: the body of a block
    test,                 // operands[0] is test(1…, keywords)
    negate,               // -operands[0]
    plus,                 // +operands[0]
    not_,                 // not operands[0]
    and_,                 // all operands
    or_,                  // all operands
    conditional,          // operands[0] if operands[1] else operands[2] (null: undefined)
    compare,              // operands[0] comparisons[0] operands[1] comparisons[1]…
    concat,               // operands joined by ~
    sum,                  // operands joined by +
    arithmetic,           // operands[0] op operands[1]
    namespace_attribute,  // target of a set only: name.attribute
  };

  Kind kind = Kind::constant;
  int line = 1;
  Value value;
  std::string_view name;
  std::string_view attribute;
  NameId id = -1;
  Arithmetic op = Arithmetic::add;
  const Filter* filter = nullptr;
  const Test* test = nullptr;
  std::vector<const Expr*> operands;
  std::vector<Keyword> keywords;
  std::vector<Comparison> comparisons;
};

using Body = std::vector<const Stmt*>;

struct Parameter {
  std::string_view name;
  NameId id;
  const Expr* default_value;  // null: none
};

// What a macro or the body of a call block takes and does.
struct Callable {
  std::string_view name;
  std::vector<Parameter> parameters;
  Body body;
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
};

struct Branch {
  const Expr* condition;  // null: else
  Body body;
};

struct Stmt {
  enum class Kind {
    data,          // value: the text
    print,         // expr
    if_,           // branches
    for_,          // target in expr, if condition; body, else_body
    set,           // target = expr
    set_block,     // target = body, through expr (a filter, or null)
    filter_block,  // expr (a filter) of body
    with,          // targets = values; body
    scope,         // body in a scope of its own (generation blocks)
    macro,         // callable, id
    call,          // expr (a call) with callable as its caller
    break_,
    continue_,
  };

  Kind kind = Kind::data;
  int line = 1;
  Value value;
  NameId id = -1;
  const Expr* target = nullptr;
  const Expr* expr = nullptr;
  const Expr* condition = nullptr;
  bool is_recursive = false;
  Body body, else_body;
  std::vector<Branch> branches;
  std::vector<const Expr*> targets, values;
  Callable callable;
};

}  // namespace troupe::jinja
