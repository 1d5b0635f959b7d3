// Python's operators on values. Each raises what Python would raise (as a Failure), and refuses what would leave 64
// bits.
#pragma once

#include "runtime/text/jinja/heap.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

// Raises "'x' is undefined" when `value` is undefined: for every use that Jinja's default Undefined refuses.
void require_defined(const Value& value);

bool truth(const Value& value);
bool equals(const Value& a, const Value& b, Meter& meter);
// a < b for what Python can order: numbers, strings, lists, tuples. `symbol` is for the message.
bool less(const Value& a, const Value& b, Meter& meter, const char* symbol = "<");
bool less_or_equal(const Value& a, const Value& b, Meter& meter);
// needle in haystack.
bool contains(const Value& haystack, const Value& needle, Heap& heap);

enum class Arithmetic { add, subtract, multiply, divide, floor_divide, modulo, power };
Value arithmetic(Arithmetic op, const Value& a, const Value& b, Heap& heap);
Value negative(const Value& value);
Value positive(const Value& value);

}  // namespace troupe::jinja
