#include "runtime/text/jinja/operators.h"

#include <algorithm>

#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  const Undefined& undefined = value.undefined();
  throw Failure(undefined.is_security ? Failure::Kind::security : Failure::Kind::undefined, undefined.message);
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "Undefined";
    case Value::Kind::none:
      return "NoneType";
    case Value::Kind::boolean:
      return "bool";
    case Value::Kind::integer:
    case Value::Kind::big_integer:
      return "int";
    case Value::Kind::real:
      return "float";
    case Value::Kind::string:
      return "str";
    case Value::Kind::dict:
      return "dict";
    case Value::Kind::name_space:
      return "Namespace";
    case Value::Kind::macro:
      return "Macro";
    case Value::Kind::loop:
      return "LoopContext";
    case Value::Kind::method:
      return "method";
    case Value::Kind::function:
      return "function";
    case Value::Kind::list:
      break;
  }
  switch (value.list().flavor) {
    case List::Flavor::list:
      return "list";
    case List::Flavor::tuple:
      return "tuple";
    case List::Flavor::range:
      return "range";
    case List::Flavor::keys:
      return "dict_keys";
    case List::Flavor::values:
      return "dict_values";
    case List::Flavor::items:
      return "dict_items";
    case List::Flavor::iterator:
      break;
  }
  return "generator";
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return false;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer() != 0;
    case Value::Kind::real:
      return value.real() != 0.0;
    case Value::Kind::string:
      return value.text().size() != 0;
    case Value::Kind::list:
      return !value.list().has_length() || !value.list().items.empty();
    case Value::Kind::dict:
      return value.dict().size() != 0;
    default:
      return true;
  }
}

namespace {

using Kind = Value::Kind;

// int and float compare by their exact values in Python; a double of 2^53 or more may stand for several integers.
int compare_whole_to_real(std::int64_t whole, double real) {
  constexpr double kTooLarge = 9223372036854775808.0;  // 2^63
  if (real != real) return 2;                          // unordered
  if (real >= kTooLarge) return -1;
  if (real < -kTooLarge) return 1;
  const auto floor = static_cast<std::int64_t>(real);  // toward zero
  if (whole != floor) return whole < floor ? -1 : 1;
  const double rest = real - static_cast<double>(floor);
  return rest > 0 ? -1 : (rest < 0 ? 1 : 0);
}

// -1, 0, 1, or 2 for unordered (a NaN).
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.integer() < b.integer() ? -1 : (a.integer() > b.integer() ? 1 : 0);
  if (a.is_whole()) return compare_whole_to_real(a.integer(), b.real());
  if (b.is_whole()) {
    const int turned = compare_whole_to_real(b.integer(), a.real());
    return turned == 2 ? 2 : -turned;
  }
  if (a.real() != a.real() || b.real() != b.real()) return 2;
  return a.real() < b.real() ? -1 : (a.real() > b.real() ? 1 : 0);
}

bool lists_equal(const List& a, const List& b, Meter& meter) {
  if (&a == &b) return true;
  const bool comparable = a.flavor == b.flavor && a.is_indexable();
  if (!comparable || a.items.size() != b.items.size()) return false;
  return std::ranges::equal(a.items, b.items, [&](const Value& x, const Value& y) { return equals(x, y, meter); });
}

bool dicts_equal(const Dict& a, const Dict& b, Meter& meter) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.entries(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.first, meter);
    return other != nullptr && equals(entry.second, *other, meter);
  });
}

[[noreturn]] void not_ordered(const Value& a, const Value& b, const char* symbol) {
  fail_runtime("'" + std::string(symbol) + "' not supported between instances of '" + std::string(type_name(a)) +
               "' and '" + std::string(type_name(b)) + "'");
}

}  // namespace

bool equals(const Value& a, const Value& b, Meter& meter) {
  meter.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::big_integer:
    case Kind::string:
      meter.step(a.bytes().size() / 64);
      return a.bytes() == b.bytes();
    case Kind::list: {
      const Nested nested(meter);
      return lists_equal(a.list(), b.list(), meter);
    }
    case Kind::dict: {
      const Nested nested(meter);
      return dicts_equal(a.dict(), b.dict(), meter);
    }
    default:
      return a.object() == b.object();
  }
}

bool less(const Value& a, const Value& b, Meter& meter, const char* symbol) {
  const Nested nested(meter);
  meter.step();
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == -1;
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) fail_unsupported("integers of more than 64 bits");
  if (a.is_string() && b.is_string()) {
    meter.step(std::min(a.bytes().size(), b.bytes().size()) / 64);
    return a.bytes() < b.bytes();  // UTF-8 sorts as its code points do
  }
  if (!a.is(Kind::list) || !b.is(Kind::list)) not_ordered(a, b, symbol);
  const List &x = a.list(), &y = b.list();
  if (x.flavor != y.flavor || x.flavor > List::Flavor::tuple) not_ordered(a, b, symbol);
  for (std::size_t i = 0; i < std::min(x.items.size(), y.items.size()); ++i) {
    if (!equals(x.items[i], y.items[i], meter)) return less(x.items[i], y.items[i], meter, symbol);
  }
  return x.items.size() < y.items.size();
}

bool less_or_equal(const Value& a, const Value& b, Meter& meter) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) <= 0;
  return !less(b, a, meter, "<=");
}

bool contains(const Value& haystack, const Value& needle, Heap& heap) {
  Meter& meter = heap.meter();
  switch (haystack.kind()) {
    case Kind::string:
      if (!needle.is_string()) {
        require_defined(needle);
        fail_runtime("'in <string>' requires string as left operand, not " + std::string(type_name(needle)));
      }
      meter.step(haystack.bytes().size() / 16);
      return haystack.bytes().find(needle.bytes()) != std::string::npos;
    case Kind::dict:
      require_hashable(needle);
      return haystack.dict().find(needle, meter) != nullptr;
    case Kind::list:
    case Kind::undefined: {
      if (haystack.is_undefined() && haystack.undefined().is_security) require_defined(haystack);
      for (const Value& item : iterate(haystack, heap)) {
        if (equals(item, needle, meter)) return true;
      }
      return false;
    }
    default:
      fail_runtime("argument of type '" + std::string(type_name(haystack)) + "' is not iterable");
  }
}

}  // namespace troupe::jinja
