// Attributes that objects have of their own, as Python's do: the methods of strings, lists and dicts, the attributes of
// `loop` and of namespaces.
//
// What would change a list or dict, and names that begin with "__", come out as undefined values whose use raises the
// sandbox's refusal.
#pragma once

#include <string_view>

#include "runtime/text/jinja/callables.h"
#include "runtime/text/jinja/heap.h"

namespace troupe::jinja {

Value own_attribute(const Value& object, std::string_view name, Heap& heap, bool& found);

// Null: strings have no such method. One that Python has and this subset has not raises.
Method::Call find_text_method(std::string_view name);

// str.split() at whitespace, and at `separator`, at most `most` times (-1: everywhere).
std::vector<Value> split_at_space(const Text& text, std::int64_t most, Heap& heap);
std::vector<Value> split_at(const Text& text, std::string_view separator, std::int64_t most, Heap& heap);
// str.splitlines().
std::vector<Value> split_lines(const Text& text, Heap& heap);
Text replaced(const Text& text, std::string_view old, const Text& with, std::int64_t most, Meter& meter);
// separator.join(parts), all of them strings.
Value joined(const Text& separator, const std::vector<Value>& parts, Heap& heap);

}  // namespace troupe::jinja
