#include "runtime/text/jinja/functions.h"

#include <algorithm>

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {
namespace {

// Jinja's sandbox blocks longer ranges.
constexpr std::int64_t kMaxRange = 100'000;

Value range(Interpreter& in, const Arguments& arguments) {
  const Bound bound("range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = !bound.has(1);
  const std::int64_t start = only_stop ? 0 : bound.whole(0, 0);
  const std::int64_t stop = only_stop ? bound.whole(0, 0) : bound.whole(1, 0);
  const std::int64_t step = bound.whole(2, 1);
  if (step == 0) fail_runtime("range() arg 3 must not be zero");
  std::vector<Value> items;
  in.meter().take(sizeof(Value));
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (std::ssize(items) == kMaxRange) {
      fail_runtime("Range too big. The sandbox blocks ranges larger than " + std::to_string(kMaxRange));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return in.heap().list(std::move(items), List::Flavor::range);
}

void add_entries(Interpreter& in, const Arguments& arguments, Dict& into) {
  if (arguments.positional.size() > 1) fail_runtime("dict expected at most 1 argument");
  for (const Value& from : arguments.positional) {
    if (!from.is(Value::Kind::dict)) fail_unsupported("a dict made of something other than a dict");
    for (const Dict::Entry& entry : from.dict().entries()) into.set(entry.first, entry.second, in.meter());
  }
  for (const auto& [name, value] : arguments.named) into.set(in.heap().text(name), value, in.meter());
}

Value dict(Interpreter& in, const Arguments& arguments) {
  Dict result;
  add_entries(in, arguments, result);
  return in.heap().dict(std::move(result));
}

Value name_space(Interpreter& in, const Arguments& arguments) {
  Namespace result;
  add_entries(in, arguments, result.attributes);
  return in.heap().make(std::move(result));
}

Value raise_exception(Interpreter& in, const Arguments& arguments) {
  const Bound bound("raise_exception", arguments, {"message"}, 1);
  throw Failure(Failure::Kind::raised, to_string(bound[0], in.heap()).bytes());
}

Value strftime_now(Interpreter& in, const Arguments& arguments) {
  const Bound bound("strftime_now", arguments, {"format"}, 1);
  return in.heap().text(format_time(bound.text(0).bytes(), in.clock()()),
                        bound.text(0).size() != 0 && bound.text(0).is_data(0));
}

constexpr Function kFunctions[] = {{"range", range},
                                   {"namespace", name_space},
                                   {"dict", dict},
                                   {"raise_exception", raise_exception},
                                   {"strftime_now", strftime_now}};
constexpr std::string_view kRefused[] = {"cycler", "joiner", "lipsum", "self"};

}  // namespace

const Function* find_function(std::string_view name, bool has_clock) {
  if (std::ranges::find(kRefused, name) != std::end(kRefused)) fail_unsupported("'" + std::string(name) + "'");
  if (name == "strftime_now" && !has_clock) return nullptr;
  const auto* found = std::ranges::find(kFunctions, name, &Function::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

namespace {

constexpr std::string_view kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};

std::string padded(int number, std::size_t width, char fill = '0') {
  const std::string digits = std::to_string(number);
  return std::string(digits.size() < width ? width - digits.size() : 0, fill) + digits;
}

template <std::size_t n>
std::string named(const std::string_view (&names)[n], int index, bool is_short) {
  const std::string_view name = names[static_cast<std::size_t>(index) % n];
  return std::string(is_short ? name.substr(0, 3) : name);
}

std::string time_part(char directive, const std::tm& t) {
  switch (directive) {
    case '%':
      return "%";
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case 'a':
      return named(kDays, t.tm_wday, true);
    case 'A':
      return named(kDays, t.tm_wday, false);
    case 'b':
    case 'h':
      return named(kMonths, t.tm_mon, true);
    case 'B':
      return named(kMonths, t.tm_mon, false);
    case 'd':
      return padded(t.tm_mday, 2);
    case 'e':
      return padded(t.tm_mday, 2, ' ');
    case 'm':
      return padded(t.tm_mon + 1, 2);
    case 'y':
      return padded((t.tm_year + 1900) % 100, 2);
    case 'Y':
      return std::to_string(t.tm_year + 1900);
    case 'C':
      return padded((t.tm_year + 1900) / 100, 2);
    case 'j':
      return padded(t.tm_yday + 1, 3);
    case 'u':
      return std::to_string(t.tm_wday == 0 ? 7 : t.tm_wday);
    case 'w':
      return std::to_string(t.tm_wday);
    case 'H':
      return padded(t.tm_hour, 2);
    case 'I':
      return padded(t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12, 2);
    case 'M':
      return padded(t.tm_min, 2);
    case 'S':
      return padded(t.tm_sec, 2);
    case 'p':
      return t.tm_hour < 12 ? "AM" : "PM";
    case 'U':
      return padded((t.tm_yday + 7 - t.tm_wday) / 7, 2);
    case 'W':
      return padded((t.tm_yday + 7 - (t.tm_wday + 6) % 7) / 7, 2);
    case 'z':
    case 'Z':
      return "";  // a time without a zone, as datetime.now() is
    case 'F':
      return format_time("%Y-%m-%d", t);
    case 'T':
    case 'X':
      return format_time("%H:%M:%S", t);
    case 'R':
      return format_time("%H:%M", t);
    case 'r':
      return format_time("%I:%M:%S %p", t);
    case 'D':
    case 'x':
      return format_time("%m/%d/%y", t);
    case 'c':
      return format_time("%a %b %e %H:%M:%S %Y", t);
    default:
      fail_unsupported(std::string("the time directive '%") + directive + "'");
  }
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '%' && i + 1 < format.size()) {
      out += time_part(format[++i], time);
    } else {
      out += format[i];
    }
  }
  return out;
}

}  // namespace troupe::jinja
