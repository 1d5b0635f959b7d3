// Filters that choose or map items: map, select, reject, selectattr, rejectattr; and default, attr.
#include <algorithm>

#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/sequences.h"
#include "runtime/text/jinja/tests.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

Value default_value(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool wanted = subject.is_undefined() || (bound.truth(1, false) && !truth(subject));
  return wanted ? bound.value_or(0, in.heap().text("")) : subject;
}

Value attr(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"}, 1);
  require_defined(subject);
  bool found = false;
  const Value value = own_attribute(subject, bound.text(0).bytes(), in.heap(), found);
  return found ? value : in.heap().undefined("the object has no attribute '" + bound.text(0).bytes() + "'");
}

// An attribute as the filters name it: "a.b", or the number of an item.
Value looked_up(const Value& item, const Value& path, Heap& heap) {
  if (path.is_whole()) return jinja::item(item, path, heap);
  if (!path.is_string()) fail_runtime("an attribute's name must be a string");
  return attribute_path(item, path.bytes(), heap);
}

Arguments without_first(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(), rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

Value map_attribute(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("map", arguments, {"attribute", "default"}, 1);
  std::vector<Value> mapped;
  for (const Value& item : iterate(subject, in.heap())) {
    const Value value = looked_up(item, bound[0], in.heap());
    mapped.push_back(value.is_undefined() && bound.has(1) ? bound[1] : value);
  }
  return in.heap().list(std::move(mapped), List::Flavor::iterator);
}

Value map(Interpreter& in, const Value& subject, const Arguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(in, subject, arguments);
  const Value& name = arguments.positional[0];
  const Filter* filter = name.is_string() ? find_filter(name.bytes()) : nullptr;
  if (filter == nullptr) fail_runtime("map() does not know this filter");
  const Arguments rest = without_first(arguments, 1);
  const Nested nested(in.meter());
  std::vector<Value> mapped;
  for (const Value& item : iterate(subject, in.heap())) mapped.push_back(filter->call(in, item, rest));
  return in.heap().list(std::move(mapped), List::Flavor::iterator);
}

// The items for which a test (by default: truth) holds as wanted. The names of test and attribute are positional.
Value choose(Interpreter& in, const Value& subject, const Arguments& arguments, bool by_attribute, bool wanted) {
  const std::size_t at = by_attribute ? 1 : 0;  // where the name of the test stands
  if (arguments.positional.size() < at) fail_runtime("Missing parameter for attribute name");
  const Test* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > at) {
    const Value& name = arguments.positional[at];
    test = name.is_string() ? find_test(name.bytes()) : nullptr;
    if (test == nullptr) fail_runtime("no such test to select by");
    rest = without_first(arguments, at + 1);
  }
  std::vector<Value> chosen;
  for (const Value& item : iterate(subject, in.heap())) {
    in.meter().step();
    const Value value = by_attribute ? looked_up(item, arguments.positional[0], in.heap()) : item;
    if ((test == nullptr ? truth(value) : test->call(in, value, rest)) == wanted) chosen.push_back(item);
  }
  return in.heap().list(std::move(chosen), List::Flavor::iterator);
}

template <bool by_attribute, bool wanted>
Value chosen(Interpreter& in, const Value& subject, const Arguments& arguments) {
  return choose(in, subject, arguments, by_attribute, wanted);
}

constexpr Filter kChoosingFilters[] = {
    {"reject", chosen<false, false>, 1},    {"selectattr", chosen<true, true>, 1},
    {"rejectattr", chosen<true, false>, 2}, {"map", map, 2},
    {"default", default_value, 2},          {"d", default_value, 2},
    {"select", chosen<false, true>, 3},     {"attr", attr, 3},
};

}  // namespace

const Filter* find_choosing_filter(std::string_view name) {
  const auto* found = std::ranges::find(kChoosingFilters, name, &Filter::name);
  return found == std::end(kChoosingFilters) ? nullptr : found;
}

}  // namespace troupe::jinja
