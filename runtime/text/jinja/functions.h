// The functions of the environment: range, dict, namespace, raise_exception, strftime_now.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "runtime/text/jinja/callables.h"

namespace troupe::jinja {

// Null for an unknown name. Names that Jinja has and this subset has not (cycler, joiner, lipsum, self) are refused,
// not undefined.
const Function* find_function(std::string_view name, bool has_clock);

// strftime in the C locale, whatever the program's locale is. Throws Failure for a directive that is not known.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace troupe::jinja
