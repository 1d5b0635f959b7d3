// Python's two ways to fill in a string: 'a %s' % x and 'a {}'.format(x).
#pragma once

#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/heap.h"

namespace troupe::jinja {

// text % values, where values is one value, a tuple, or a dict for %(name)s. Conversions s, r, d, i, x, X, o, f, F, e,
// E and %, with flags, width and precision; others are refused.
Value percent_format(const Text& text, const Value& values, Heap& heap);

// text.format(…): {}, {0} and {name}, {{ and }}. Format specs, attributes and conversions are refused.
Value brace_format(const Text& text, const Arguments& arguments, Heap& heap);

}  // namespace troupe::jinja
