// arithmetic() of operators.h: Python's +, -, *, /, //, %, **.
#include <cmath>

#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

const char* symbol(Arithmetic op) {
  switch (op) {
    case Arithmetic::add:
      return "+";
    case Arithmetic::subtract:
      return "-";
    case Arithmetic::multiply:
      return "*";
    case Arithmetic::divide:
      return "/";
    case Arithmetic::floor_divide:
      return "//";
    case Arithmetic::modulo:
      return "%";
    case Arithmetic::power:
      return "**";
  }
  return "?";
}

[[noreturn]] void wrong_types(Arithmetic op, const Value& a, const Value& b) {
  if (op == Arithmetic::add && (a.is_string() || (a.is(Kind::list) && a.list().flavor <= List::Flavor::tuple))) {
    const std::string type(type_name(a));
    fail_runtime("can only concatenate " + type + " (not \"" + std::string(type_name(b)) + "\") to " + type);
  }
  fail_runtime("unsupported operand type(s) for " + std::string(symbol(op)) + ": '" + std::string(type_name(a)) +
               "' and '" + std::string(type_name(b)) + "'");
}

[[noreturn]] void too_large() {
  fail_unsupported("an integer result of more than 64 bits");
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_runtime("integer division or modulo by zero");
  if (b == -1) {
    std::int64_t negated = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &negated)) too_large();
    return negated;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_runtime("integer modulo by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t whole_power(std::int64_t base, std::int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {  // at most 63 rounds: |base| >= 2
    if (__builtin_mul_overflow(result, base, &result)) too_large();
  }
  return result;
}

Value of_wholes(Arithmetic op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Arithmetic::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Arithmetic::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Arithmetic::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Arithmetic::divide:
      if (b == 0) fail_runtime("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Arithmetic::floor_divide:
      return floor_quotient(a, b);
    case Arithmetic::modulo:
      return floor_remainder(a, b);
    case Arithmetic::power:
      if (b >= 0) return whole_power(a, b);
      if (a == 0) fail_runtime("0.0 cannot be raised to a negative power");
      return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
  if (overflow) too_large();
  return result;
}

double real_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0.0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double real_floor_quotient(double a, double b) {
  const double quotient = (a - real_remainder(a, b)) / b;  // whole but for rounding
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1.0 : floor;
}

double real_power(double a, double b) {
  if (a == 0.0 && b < 0) fail_runtime("0.0 cannot be raised to a negative power");
  if (a < 0 && std::floor(b) != b) fail_unsupported("a complex number");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail_runtime("(34, 'Numerical result out of range')");
  return result;
}

Value of_reals(Arithmetic op, double a, double b) {
  if (b == 0.0 && op >= Arithmetic::divide && op <= Arithmetic::modulo) fail_runtime("float division by zero");
  switch (op) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::subtract:
      return a - b;
    case Arithmetic::multiply:
      return a * b;
    case Arithmetic::divide:
      return a / b;
    case Arithmetic::floor_divide:
      return real_floor_quotient(a, b);
    case Arithmetic::modulo:
      return real_remainder(a, b);
    case Arithmetic::power:
      break;
  }
  return real_power(a, b);
}

Value joined_lists(const List& a, const List& b, Heap& heap) {
  std::vector<Value> items;
  heap.meter().take(a.items.size() + b.items.size(), sizeof(Value));
  items.insert(items.end(), a.items.begin(), a.items.end());
  items.insert(items.end(), b.items.begin(), b.items.end());
  return heap.list(std::move(items), a.flavor);
}

Value joined_texts(const Text& a, const Text& b, Heap& heap) {
  TextBuilder out(heap.meter());
  out.append(a);
  out.append(b);
  return heap.text(out);
}

// sequence * count.
Value repeated(const Value& sequence, std::int64_t count, Heap& heap) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(0, count));
  if (sequence.is_string()) {
    TextBuilder out(heap.meter());
    if (sequence.text().size() == 0) return sequence;
    heap.meter().take(times, sequence.text().size());
    for (std::size_t i = 0; i < times; ++i) out.append(sequence.text());
    return heap.text(out);
  }
  const auto& items = sequence.list().items;
  std::vector<Value> all;
  if (items.empty()) return heap.list({}, sequence.list().flavor);
  heap.meter().take(times, items.size() * sizeof(Value));
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), items.begin(), items.end());
  return heap.list(std::move(all), sequence.list().flavor);
}

bool is_repeatable(const Value& value) {
  return value.is_string() || (value.is(Kind::list) && value.list().flavor <= List::Flavor::tuple);
}

}  // namespace

Value arithmetic(Arithmetic op, const Value& a, const Value& b, Heap& heap) {
  if (op == Arithmetic::modulo && a.is_string()) return percent_format(a.text(), b, heap);
  require_defined(a);
  require_defined(b);
  if (a.is_whole() && b.is_whole()) return of_wholes(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return of_reals(op, a.real(), b.real());
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) fail_unsupported("integers of more than 64 bits");
  if (op == Arithmetic::add && a.is_string() && b.is_string()) return joined_texts(a.text(), b.text(), heap);
  if (op == Arithmetic::add && is_repeatable(a) && is_repeatable(b) && a.kind() == b.kind() &&
      a.list().flavor == b.list().flavor) {
    return joined_lists(a.list(), b.list(), heap);
  }
  if (op == Arithmetic::multiply && is_repeatable(a) && b.is_whole()) return repeated(a, b.integer(), heap);
  if (op == Arithmetic::multiply && is_repeatable(b) && a.is_whole()) return repeated(b, a.integer(), heap);
  wrong_types(op, a, b);
}

Value negative(const Value& value) {
  require_defined(value);
  if (value.is_whole()) return of_wholes(Arithmetic::subtract, 0, value.integer());
  if (value.is(Kind::real)) return -value.real();
  fail_runtime("bad operand type for unary -: '" + std::string(type_name(value)) + "'");
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is_whole()) return value.integer();
  if (value.is(Kind::real)) return value;
  fail_runtime("bad operand type for unary +: '" + std::string(type_name(value)) + "'");
}

}  // namespace troupe::jinja
