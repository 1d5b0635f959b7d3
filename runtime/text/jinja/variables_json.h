// JSON text to values. nlohmann's parser reads it event by event: no tree in between, no recursion, a limit of depth.
#pragma once

#include <string_view>

#include "runtime/text/jinja/heap.h"

namespace troupe::jinja {

// Deeper JSON is refused.
constexpr int kMaxJsonDepth = 128;

// Throws Failure (runtime) for malformed JSON, invalid UTF-8 and too deep nesting. is_data: what the strings are.
Value read_json(std::string_view json, Heap& heap, bool is_data);

// The names that a template sees, from a JSON object. Every string is data, keys included, except a message's role when
// it is one of the conventional words (user, assistant, system, …): such a word says nothing that the template would
// not, and templates build their marks of it ('<|' + role + '|>').
const Dict& read_context(std::string_view json, Heap& heap);

// Whether `role` is such a word.
bool is_conventional_role(std::string_view role);

}  // namespace troupe::jinja
