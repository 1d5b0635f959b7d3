#include "runtime/text/jinja/sequences.h"

#include <algorithm>
#include <limits>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

Value each_character(const Text& text, Heap& heap) {
  std::vector<Value> items;
  for (std::size_t at = 0, size = 0; at < text.size(); at += size) {
    decode_character(std::string_view(text.bytes()).substr(at), size);
    TextBuilder one(heap.meter());
    one.append(text, at, at + size);
    items.push_back(heap.text(one));
  }
  return heap.list(std::move(items));
}

Value keys_of(const Dict& dict, Heap& heap) {
  std::vector<Value> keys;
  heap.meter().take(dict.size(), sizeof(Value));
  for (const Dict::Entry& entry : dict.entries()) keys.push_back(entry.first);
  return heap.list(std::move(keys), List::Flavor::keys);
}

}  // namespace

bool is_iterable(const Value& value) {
  return value.is(Kind::list) || value.is(Kind::dict) || value.is_string() || value.is_undefined() ||
         value.is(Kind::loop);
}

std::span<const Value> iterate(const Value& value, Heap& heap) {
  switch (value.kind()) {
    case Kind::undefined:
      return {};
    case Kind::string:
      return each_character(value.text(), heap).list().items;
    case Kind::dict:
      return keys_of(value.dict(), heap).list().items;
    case Kind::list:
      break;
    case Kind::loop:
      fail_unsupported("a loop cannot be read inside itself");
    default:
      fail_runtime("'" + std::string(type_name(value)) + "' object is not iterable");
  }
  List& list = value.list();
  const std::span<const Value> rest = std::span(list.items).subspan(list.next);
  if (list.flavor == List::Flavor::iterator) list.next = list.items.size();
  return rest;
}

std::int64_t length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<std::int64_t>(count_characters(value.bytes()));
    case Kind::dict:
      return static_cast<std::int64_t>(value.dict().size());
    case Kind::loop:
      return static_cast<std::int64_t>(value.loop().items.size());
    case Kind::list:
      if (value.list().has_length()) return static_cast<std::int64_t>(value.list().items.size());
      [[fallthrough]];
    default:
      fail_runtime("object of type '" + std::string(type_name(value)) + "' has no len()");
  }
}

void require_hashable(const Value& value) {
  if (value.is(Kind::dict) || (value.is(Kind::list) && value.list().flavor == List::Flavor::list)) {
    fail_runtime("unhashable type: '" + std::string(type_name(value)) + "'");
  }
  if (value.is(Kind::list) && value.list().flavor == List::Flavor::tuple) {
    for (const Value& item : value.list().items) {
      if (item.is(Kind::list) || item.is(Kind::dict)) fail_unsupported("a dict key that is a tuple of collections");
    }
  }
}

namespace {

// The place of a Python index, or -1.
std::int64_t place(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

Value character_at(const Text& text, std::int64_t index, Heap& heap, bool& found) {
  heap.meter().step(text.size() / 64);
  if (index < 0) index += static_cast<std::int64_t>(count_characters(text.bytes()));
  found = false;
  if (index < 0) return Value();
  const std::size_t begin = offset_of(text.bytes(), static_cast<std::size_t>(index));
  if (begin >= text.size()) return Value();
  found = true;
  std::size_t size = 0;
  decode_character(std::string_view(text.bytes()).substr(begin), size);
  TextBuilder one(heap.meter());
  one.append(text, begin, begin + size);
  return heap.text(one);
}

// object[key] without the fall back to attributes.
Value own_item(const Value& object, const Value& key, Heap& heap, bool& found) {
  found = false;
  if (object.is(Kind::dict)) {
    if (key.is(Kind::list) || key.is(Kind::dict)) return Value();
    const Value* value = object.dict().find(key, heap.meter());
    found = value != nullptr;
    return found ? *value : Value();
  }
  if (!key.is_whole()) return Value();
  if (object.is_string()) return character_at(object.text(), key.integer(), heap, found);
  if (!object.is(Kind::list) || !object.list().is_indexable()) return Value();
  const auto& items = object.list().items;
  const std::int64_t at = place(key.integer(), static_cast<std::int64_t>(items.size()));
  found = at >= 0;
  return found ? items[static_cast<std::size_t>(at)] : Value();
}

Value missing_attribute(const Value& object, std::string_view name, Heap& heap) {
  return heap.undefined("'" + std::string(type_name(object)) + " object' has no attribute '" + std::string(name) + "'");
}

}  // namespace

Value item(const Value& object, const Value& key, Heap& heap) {
  require_defined(object);
  bool found = false;
  const Value own = own_item(object, key, heap, found);
  if (found) return own;
  if (key.is_string()) {
    const Value named = own_attribute(object, key.bytes(), heap, found);
    return found ? named : missing_attribute(object, key.bytes(), heap);
  }
  return heap.undefined("'" + std::string(type_name(object)) + " object' has no such element");
}

Value attribute(const Value& object, std::string_view name, Heap& heap) {
  require_defined(object);
  bool found = false;
  const Value named = own_attribute(object, name, heap, found);
  if (found) return named;
  if (object.is(Kind::dict)) {
    heap.meter().step();
    if (const Value* value = object.dict().find(name)) return *value;
  }
  return missing_attribute(object, name, heap);
}

Value attribute_path(const Value& object, std::string_view path, Heap& heap) {
  Value value = object;
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    const bool is_index = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    value = is_index ? item(value, Value(std::int64_t{std::stol(std::string(part))}), heap)
                     : item(value, heap.text(part), heap);
    if (dot == path.npos) return value;
    path.remove_prefix(dot + 1);
  }
}

namespace {

std::int64_t slice_bound(const Value& value, std::int64_t when_none) {
  if (value.is(Kind::none)) return when_none;
  if (value.is_whole()) return value.integer();
  fail_runtime("slice indices must be integers or None or have an __index__ method");
}

struct Range {
  std::int64_t start, count, step;
};

// Python's slice.indices().
Range slice_range(std::int64_t size, const Value& from, const Value& to, const Value& by) {
  const std::int64_t step = slice_bound(by, 1);
  if (step == 0) fail_runtime("slice step cannot be zero");
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, std::int64_t when_none) {
    std::int64_t at = slice_bound(value, when_none);
    if (value.is(Kind::none)) return at;
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  const std::int64_t start = bound(from, step > 0 ? low : high);
  const std::int64_t stop = bound(to, step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? stop - start : start - stop;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  const std::int64_t count =
      distance <= 0 ? 0 : static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / stride) + 1;
  return {start, count, step};
}

Value slice_text(const Text& text, const Value& start, const Value& stop, const Value& step, Heap& heap) {
  heap.meter().step(text.size() / 64);
  const auto size = static_cast<std::int64_t>(count_characters(text.bytes()));
  const Range range = slice_range(size, start, stop, step);
  TextBuilder out(heap.meter());
  if (range.step == 1) {
    const std::size_t begin = offset_of(text.bytes(), static_cast<std::size_t>(range.start));
    const std::string_view rest = std::string_view(text.bytes()).substr(begin);
    out.append(text, begin, begin + offset_of(rest, static_cast<std::size_t>(range.count)));
    return heap.text(out);
  }
  const auto all = characters(text, heap.meter());
  for (std::int64_t i = 0; i < range.count; ++i) {
    append(out, all[static_cast<std::size_t>(range.start + i * range.step)]);
  }
  return heap.text(out);
}

}  // namespace

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step, Heap& heap) {
  require_defined(object);
  if (object.is_string()) return slice_text(object.text(), start, stop, step, heap);
  if (!object.is(Kind::list) || !object.list().is_indexable()) {
    fail_runtime("'" + std::string(type_name(object)) + "' object cannot be sliced");
  }
  const auto& items = object.list().items;
  const Range range = slice_range(static_cast<std::int64_t>(items.size()), start, stop, step);
  std::vector<Value> taken;
  heap.meter().take(static_cast<std::size_t>(range.count), sizeof(Value));
  for (std::int64_t i = 0; i < range.count; ++i) {
    taken.push_back(items[static_cast<std::size_t>(range.start + i * range.step)]);
  }
  const auto flavor = object.list().flavor;
  return heap.list(std::move(taken), flavor);
}

}  // namespace troupe::jinja
