// What a value looks like when printed: Python's str() and repr().
#pragma once

#include <string>

#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

// repr(float): the shortest digits that read back the same; an exponent below 1e-4 and from 1e16 on.
std::string python_float(double value);

// str(value); nothing for undefined. Refuses objects whose print would be a memory address.
void print(const Value& value, TextBuilder& out);
void print_repr(const Value& value, TextBuilder& out);
// str(value) as a Text: the value's own if it is a string.
Value to_string(const Value& value, Heap& heap);

}  // namespace troupe::jinja
