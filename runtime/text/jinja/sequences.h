// Iteration, length, subscripts and attributes: obj[key], obj[a:b:c], obj.name as Jinja's sandbox gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

// The items of anything that Python iterates: lists and their like, the keys of a dict, the characters of a string,
// nothing for undefined. An iterator is used up by it.
std::span<const Value> iterate(const Value& value, Heap& heap);
bool is_iterable(const Value& value);
// len(value).
std::int64_t length(const Value& value);
void require_hashable(const Value& value);

// obj[key]: an item, else (for a string key) an attribute, else undefined.
Value item(const Value& object, const Value& key, Heap& heap);
// obj.name: an attribute, else an item, else undefined.
Value attribute(const Value& object, std::string_view name, Heap& heap);
// obj[start:stop:step]; none stands for a bound that was left out.
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step, Heap& heap);
// "a.b.0" of the filters map, sort, selectattr…: items of items.
Value attribute_path(const Value& object, std::string_view path, Heap& heap);

}  // namespace troupe::jinja
