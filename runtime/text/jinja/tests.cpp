#include "runtime/text/jinja/tests.h"

#include <algorithm>
#include <cmath>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

const Value& no_arguments(const char* name, const Value& subject, const Arguments& arguments) {
  const Bound bound(name, arguments, {});
  return subject;
}

// A test of the kind of a value.
template <bool (*holds)(const Value&)>
bool kind_test(Interpreter&, const Value& subject, const Arguments& arguments) {
  return holds(no_arguments("test", subject, arguments));
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is(Kind::none);
}
bool is_string(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.is(Kind::dict);
}
bool is_sequence(const Value& v) {
  return v.is_string() || v.is(Kind::dict) || v.is_undefined() || (v.is(Kind::list) && v.list().is_indexable());
}
bool is_boolean(const Value& v) {
  return v.is(Kind::boolean);
}
bool is_true(const Value& v) {
  return v.is(Kind::boolean) && v.boolean();
}
bool is_false(const Value& v) {
  return v.is(Kind::boolean) && !v.boolean();
}
bool is_number(const Value& v) {
  return v.is_number() || v.is(Kind::big_integer);
}
bool is_integer(const Value& v) {
  return v.is(Kind::integer) || v.is(Kind::big_integer);
}
bool is_float(const Value& v) {
  return v.is(Kind::real);
}
bool is_callable(const Value& v) {
  return v.is(Kind::function) || v.is(Kind::method) || v.is(Kind::macro) || v.is(Kind::loop) || v.is_undefined();
}

double remainder_of(Interpreter& in, const Value& subject, const Value& divisor) {
  return arithmetic(Arithmetic::modulo, subject, divisor, in.heap()).real();
}

void require_number(const Value& value) {
  require_defined(value);
  if (!value.is_number()) fail_runtime("a number is wanted, not '" + std::string(type_name(value)) + "'");
}

bool is_odd(Interpreter& in, const Value& subject, const Arguments& arguments) {
  require_number(no_arguments("odd", subject, arguments));
  return remainder_of(in, subject, Value(std::int64_t{2})) == 1.0;
}

bool is_even(Interpreter& in, const Value& subject, const Arguments& arguments) {
  require_number(no_arguments("even", subject, arguments));
  return remainder_of(in, subject, Value(std::int64_t{2})) == 0.0;
}

bool is_divisible_by(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("divisibleby", arguments, {"num"}, 1);
  require_number(subject);
  require_number(bound[0]);
  return remainder_of(in, subject, bound[0]) == 0.0;
}

// At least one cased character, and all of them of one case.
template <bool (*is_wanted)(char32_t)>
bool case_test(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Value text = to_string(no_arguments("case", subject, arguments), in.heap());
  bool any = false;
  for (const Character c : characters(text.text(), in.meter())) {
    if (!is_cased(c.code)) continue;
    if (!is_wanted(c.code)) return false;
    any = true;
  }
  return any;
}

template <Comparison op>
bool comparison_test(Interpreter& in, const Value& a, const Arguments& arguments) {
  const Bound bound("comparison", arguments, {"other"}, 1);
  const Value& b = bound[0];
  switch (op) {
    case Comparison::equal:
      return equals(a, b, in.meter());
    case Comparison::not_equal:
      return !equals(a, b, in.meter());
    case Comparison::less:
      return less(a, b, in.meter());
    case Comparison::less_equal:
      return less_or_equal(a, b, in.meter());
    case Comparison::greater:
      return less(b, a, in.meter(), ">");
    case Comparison::greater_equal:
      return less_or_equal(b, a, in.meter());
    case Comparison::in:
      return contains(b, a, in.heap());
    case Comparison::not_in:
      return !contains(b, a, in.heap());
  }
  return false;
}

// Python's `is`: certain for None, booleans, small integers and other kinds of objects only.
bool is_same(Interpreter&, const Value& a, const Arguments& arguments) {
  const Bound bound("sameas", arguments, {"other"}, 1);
  const Value& b = bound[0];
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::none)) return true;
  if (a.is(Kind::boolean)) return a.boolean() == b.boolean();
  const bool small = a.is(Kind::integer) && a.integer() >= -5 && a.integer() <= 256;
  if (small) return a.integer() == b.integer();
  if (!a.is_number() && a.object() == b.object()) return true;
  fail_unsupported("the test 'sameas' of values of this kind");
}

constexpr Test kTests[] = {
    {"defined", kind_test<is_defined>},
    {"undefined", kind_test<is_undefined>},
    {"none", kind_test<is_none>},
    {"string", kind_test<is_string>},
    {"mapping", kind_test<is_mapping>},
    {"iterable", kind_test<is_iterable>},
    {"sequence", kind_test<is_sequence>},
    {"boolean", kind_test<is_boolean>},
    {"true", kind_test<is_true>},
    {"false", kind_test<is_false>},
    {"number", kind_test<is_number>},
    {"integer", kind_test<is_integer>},
    {"float", kind_test<is_float>},
    {"callable", kind_test<is_callable>},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible_by},
    {"upper", case_test<is_upper>},
    {"lower", case_test<is_lower>},
    {"sameas", is_same},
    {"in", comparison_test<Comparison::in>},
    {"==", comparison_test<Comparison::equal>},
    {"eq", comparison_test<Comparison::equal>},
    {"equalto", comparison_test<Comparison::equal>},
    {"!=", comparison_test<Comparison::not_equal>},
    {"ne", comparison_test<Comparison::not_equal>},
    {"<", comparison_test<Comparison::less>},
    {"lt", comparison_test<Comparison::less>},
    {"lessthan", comparison_test<Comparison::less>},
    {"<=", comparison_test<Comparison::less_equal>},
    {"le", comparison_test<Comparison::less_equal>},
    {">", comparison_test<Comparison::greater>},
    {"gt", comparison_test<Comparison::greater>},
    {"greaterthan", comparison_test<Comparison::greater>},
    {">=", comparison_test<Comparison::greater_equal>},
    {"ge", comparison_test<Comparison::greater_equal>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* found = std::ranges::find(kTests, name, &Test::name);
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace troupe::jinja
