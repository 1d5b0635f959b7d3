#include "runtime/text/jinja/methods.h"

#include <algorithm>

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

struct Named {
  std::string_view name;
  Method::Call call;
};

Value unsafe(const Value& object, std::string_view name, Heap& heap) {
  return heap.undefined(
      "access to attribute '" + std::string(name) + "' of '" + std::string(type_name(object)) + "' object is unsafe.",
      true);
}

template <std::size_t n>
bool is_one_of(const std::string_view (&names)[n], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

// Lists and tuples.

Value list_index(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("index", arguments, {"value"}, 1);
  const auto& items = self.list().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equals(items[i], bound[0], in.meter())) return Value(static_cast<std::int64_t>(i));
  }
  fail_runtime("the value is not in the list");
}

Value list_count(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {"value"}, 1);
  std::int64_t count = 0;
  for (const Value& item : self.list().items) count += equals(item, bound[0], in.meter()) ? 1 : 0;
  return Value(count);
}

Value list_copy(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("copy", arguments, {});
  return in.heap().list(self.list().items);
}

Method::Call list_method(const List& list, std::string_view name) {
  if (!list.is_indexable()) return nullptr;
  if (name == "index") return list_index;
  if (name == "count") return list_count;
  return name == "copy" && list.flavor == List::Flavor::list ? list_copy : nullptr;
}

// Dicts.

Value dict_get(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("get", arguments, {"key", "default"}, 1);
  require_hashable(bound[0]);
  const Value* value = self.dict().find(bound[0], in.meter());
  return value != nullptr ? *value : bound.value_or(1, Value());
}

Value view(Interpreter& in, const Value& self, const Arguments& arguments, List::Flavor flavor) {
  const Bound bound(flavor == List::Flavor::keys ? "keys" : "values", arguments, {});
  std::vector<Value> items;
  in.meter().take(self.dict().size(), sizeof(Value));
  for (const auto& [key, value] : self.dict().entries()) items.push_back(flavor == List::Flavor::keys ? key : value);
  return in.heap().list(std::move(items), flavor);
}

Value dict_keys(Interpreter& in, const Value& self, const Arguments& arguments) {
  return view(in, self, arguments, List::Flavor::keys);
}

Value dict_values(Interpreter& in, const Value& self, const Arguments& arguments) {
  return view(in, self, arguments, List::Flavor::values);
}

Value dict_items(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("items", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().entries()) {
    items.push_back(in.heap().list({key, value}, List::Flavor::tuple));
  }
  return in.heap().list(std::move(items), List::Flavor::items);
}

Value dict_copy(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound bound("copy", arguments, {});
  return self;  // a dict never changes
}

constexpr Named kDictMethods[] = {
    {"get", dict_get}, {"keys", dict_keys}, {"values", dict_values}, {"items", dict_items}, {"copy", dict_copy}};

Method::Call dict_method(std::string_view name) {
  const auto* found = std::ranges::find(kDictMethods, name, &Named::name);
  return found == std::end(kDictMethods) ? nullptr : found->call;
}

// The loop.

Value loop_cycle(Interpreter&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) fail_runtime("no items for cycling given");
  return arguments.positional[self.loop().index % arguments.positional.size()];
}

Value loop_changed(Interpreter& in, const Value& self, const Arguments& arguments) {
  Loop& loop = self.loop();
  const bool same =
      loop.has_changed && std::ranges::equal(loop.last_changed, arguments.positional,
                                             [&](const Value& a, const Value& b) { return equals(a, b, in.meter()); });
  loop.has_changed = true;
  loop.last_changed = arguments.positional;
  return Value(!same);
}

Value neighbour(const Loop& loop, bool exists, std::size_t index, Heap& heap) {
  return exists ? loop.items[index] : heap.undefined("there is no such item");
}

Value loop_attribute(const Value& object, std::string_view name, Heap& heap, bool& found) {
  const Loop& loop = object.loop();
  const auto index = static_cast<std::int64_t>(loop.index);
  const std::int64_t size = std::ssize(loop.items);
  found = true;
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(std::int64_t{loop.depth});
  if (name == "depth0") return Value(std::int64_t{loop.depth - 1});
  if (name == "previtem") return neighbour(loop, index > 0, loop.index - 1, heap);
  if (name == "nextitem") return neighbour(loop, index + 1 < size, loop.index + 1, heap);
  found = name == "cycle" || name == "changed";
  if (!found) return Value();
  const Method method{object, name == "cycle" ? loop_cycle : loop_changed};
  return static_cast<const Method*>(heap.make(method));
}

Value macro_attribute(const Value& object, std::string_view name, Heap& heap, bool& found) {
  static constexpr std::string_view kOther[] = {"arguments", "catch_kwargs", "catch_varargs", "caller",
                                                "explicit_caller"};
  if (is_one_of(kOther, name)) fail_unsupported("the attribute '" + std::string(name) + "' of a macro");
  found = name == "name";
  return found ? heap.text(object.macro().callable->name) : Value();
}

Method::Call find_method(const Value& object, std::string_view name) {
  if (object.is_string()) return find_text_method(name);
  if (object.is(Kind::list)) return list_method(object.list(), name);
  return object.is(Kind::dict) ? dict_method(name) : nullptr;
}

bool would_change(const Value& object, std::string_view name) {
  static constexpr std::string_view kList[] = {"append", "clear", "pop",    "reverse",
                                               "insert", "sort",  "extend", "remove"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (object.is(Kind::list)) return object.list().flavor == List::Flavor::list && is_one_of(kList, name);
  return object.is(Kind::dict) && is_one_of(kDict, name);
}

void refuse_number_attribute(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "real",      "imag",     "numerator",        "denominator", "conjugate", "bit_length",
      "bit_count", "to_bytes", "as_integer_ratio", "is_integer",  "hex"};
  if (is_one_of(kNames, name)) fail_unsupported("the attribute '" + std::string(name) + "' of a number");
}

}  // namespace

Value own_attribute(const Value& object, std::string_view name, Heap& heap, bool& found) {
  found = name.starts_with("__") || would_change(object, name);
  if (found) return unsafe(object, name, heap);
  if (object.is(Kind::loop)) return loop_attribute(object, name, heap, found);
  if (object.is(Kind::macro)) return macro_attribute(object, name, heap, found);
  if (object.is(Kind::name_space)) {
    const Value* value = object.space().attributes.find(name);
    found = value != nullptr;
    return found ? *value : Value();
  }
  if (object.is_number()) refuse_number_attribute(name);
  const Method::Call call = find_method(object, name);
  found = call != nullptr;
  return found ? Value(static_cast<const Method*>(heap.make(Method{object, call}))) : Value();
}

}  // namespace troupe::jinja
