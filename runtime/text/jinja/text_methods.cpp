// The methods of strings (methods.h): Python's, on Texts.
#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {
namespace {

Value part(const Text& text, std::size_t begin, std::size_t end, Heap& heap) {
  TextBuilder out(heap.meter());
  out.append(text, begin, end);
  return heap.text(out);
}

Value strip(Interpreter& in, const Value& self, const Arguments& arguments, bool left, bool right) {
  const Bound bound("strip", arguments, {"chars"});
  const std::string& bytes = self.bytes();
  in.meter().step(bytes.size() / 64);
  const bool space = !bound.has(0) || bound[0].is(Value::Kind::none);
  const ByteRange kept =
      space ? stripped_of_space(bytes, left, right) : stripped(bytes, bound.text(0).bytes(), left, right);
  return part(self.text(), kept.begin, kept.end, in.heap());
}

Value strip_both(Interpreter& in, const Value& self, const Arguments& a) {
  return strip(in, self, a, true, true);
}
Value strip_left(Interpreter& in, const Value& self, const Arguments& a) {
  return strip(in, self, a, true, false);
}
Value strip_right(Interpreter& in, const Value& self, const Arguments& a) {
  return strip(in, self, a, false, true);
}

Value split(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const std::int64_t most = bound.whole(1, -1);
  if (!bound.has(0) || bound[0].is(Value::Kind::none))
    return in.heap().list(split_at_space(self.text(), most, in.heap()));
  return in.heap().list(split_at(self.text(), bound.text(0).bytes(), most, in.heap()));
}

Value split_right(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("rsplit", arguments, {"sep", "maxsplit"}, 1);
  const std::int64_t most = bound.whole(1, -1);
  if (bound[0].is(Value::Kind::none)) fail_unsupported("rsplit() at whitespace");
  const std::string &bytes = self.bytes(), &separator = bound.text(0).bytes();
  if (separator.empty()) fail_runtime("empty separator");
  std::vector<Value> parts;
  std::size_t end = bytes.size();
  while (most < 0 || std::ssize(parts) < most) {
    if (end < separator.size()) break;
    const std::size_t at = bytes.rfind(separator, end - separator.size());
    if (at == std::string::npos) break;
    parts.push_back(part(self.text(), at + separator.size(), end, in.heap()));
    end = at;
  }
  parts.push_back(part(self.text(), 0, end, in.heap()));
  std::ranges::reverse(parts);
  return in.heap().list(std::move(parts));
}

Value lines(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("splitlines", arguments, {});
  return in.heap().list(split_lines(self.text(), in.heap()));
}

template <class Matches>
Value matches_end(const Bound& bound, Matches matches) {
  if (!bound[0].is(Value::Kind::list)) return Value(matches(std::string_view(bound.text(0).bytes())));
  if (bound[0].list().flavor != List::Flavor::tuple) fail_runtime("a string or a tuple of strings is wanted, not list");
  for (const Value& item : bound[0].list().items) {
    if (!item.is_string()) fail_runtime("a tuple of strings is wanted");
    if (matches(std::string_view(item.bytes()))) return Value(true);
  }
  return Value(false);
}

Value starts_with(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound bound("startswith", arguments, {"prefix"}, 1);
  return matches_end(bound, [&](std::string_view prefix) { return self.bytes().starts_with(prefix); });
}

Value ends_with(Interpreter&, const Value& self, const Arguments& arguments) {
  const Bound bound("endswith", arguments, {"suffix"}, 1);
  return matches_end(bound, [&](std::string_view suffix) { return self.bytes().ends_with(suffix); });
}

Value replace(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  return in.heap().text(replaced(self.text(), bound.text(0).bytes(), bound.text(1), bound.whole(2, -1), in.meter()));
}

template <Text (*mapping)(const Text&, Meter&)>
Value mapped(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  return in.heap().text(mapping(self.text(), in.meter()));
}

// Where `wanted` stands in `self`, in characters; -1: nowhere.
std::int64_t position(Interpreter& in, const Value& self, const Bound& bound, bool from_right) {
  in.meter().step(self.bytes().size() / 16);
  const std::string& wanted = bound.text(0).bytes();
  const std::size_t at = from_right ? self.bytes().rfind(wanted) : self.bytes().find(wanted);
  if (at == std::string::npos) return -1;
  return static_cast<std::int64_t>(count_characters(std::string_view(self.bytes()).substr(0, at)));
}

template <bool from_right, bool must_be_there>
Value find(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("find", arguments, {"sub"}, 1);
  const std::int64_t at = position(in, self, bound, from_right);
  if (at < 0 && must_be_there) fail_runtime("substring not found");
  return Value(at);
}

Value count(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {"sub"}, 1);
  const std::string& wanted = bound.text(0).bytes();
  in.meter().step(self.bytes().size() / 16);
  if (wanted.empty()) return Value(length(self) + 1);
  std::int64_t found = 0;
  for (std::size_t at = self.bytes().find(wanted); at != std::string::npos;
       at = self.bytes().find(wanted, at + wanted.size())) {
    ++found;
  }
  return Value(found);
}

Value join(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("join", arguments, {"iterable"}, 1);
  const std::span<const Value> parts = iterate(bound[0], in.heap());
  return joined(self.text(), {parts.begin(), parts.end()}, in.heap());
}

template <bool (*holds)(char32_t)>
Value all_characters(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  const auto all = characters(self.text(), in.meter());
  return Value(!all.empty() && std::ranges::all_of(all, [](Character c) { return holds(c.code); }));
}

bool only_ascii(char32_t c) {
  if (c >= 0x80) fail_unsupported("the classes of letters outside ASCII");
  return true;
}
bool is_digit(char32_t c) {
  return only_ascii(c) && c >= '0' && c <= '9';
}
bool is_alpha(char32_t c) {
  return only_ascii(c) && is_cased(c);
}
bool is_alnum(char32_t c) {
  return is_digit(c) || is_alpha(c);
}

template <bool (*is_wanted)(char32_t)>
Value all_cased(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("the method", arguments, {});
  bool any = false, all = true;
  for (const Character c : characters(self.text(), in.meter())) {
    if (!is_cased(c.code)) continue;
    any = true;
    all = all && is_wanted(c.code);
  }
  return Value(any && all);
}

Value remove_prefix(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("removeprefix", arguments, {"prefix"}, 1);
  const std::string& prefix = bound.text(0).bytes();
  return part(self.text(), self.bytes().starts_with(prefix) ? prefix.size() : 0, self.bytes().size(), in.heap());
}

Value remove_suffix(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("removesuffix", arguments, {"suffix"}, 1);
  const std::size_t size = self.bytes().size(), taken = bound.text(0).size();
  return part(self.text(), 0, self.bytes().ends_with(bound.text(0).bytes()) ? size - taken : size, in.heap());
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("partition", arguments, {"sep"}, 1);
  const std::string& separator = bound.text(0).bytes();
  if (separator.empty()) fail_runtime("empty separator");
  Heap& heap = in.heap();
  const std::size_t at = from_right ? self.bytes().rfind(separator) : self.bytes().find(separator);
  const Value empty = heap.text("");
  if (at == std::string::npos) {
    return heap.list(from_right ? std::vector{empty, empty, self} : std::vector{self, empty, empty},
                     List::Flavor::tuple);
  }
  const std::size_t after = at + separator.size();
  return heap.list({part(self.text(), 0, at, heap), part(self.text(), at, after, heap),
                    part(self.text(), after, self.bytes().size(), heap)},
                   List::Flavor::tuple);
}

enum class Side { left, right, both };

template <Side side>
Value justify(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("ljust", arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound.has(1) ? bound.text(1).bytes() : " ";
  if (count_characters(fill) != 1) fail_runtime("the fill character must be exactly one character long");
  const std::int64_t width = bound.whole(0, 0), size = length(self);
  const auto missing = static_cast<std::size_t>(width > size ? width - size : 0);
  // Python puts the odd blank of a centred text to the left if the width is odd.
  const std::size_t half = missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  const std::size_t before = side == Side::left ? 0 : (side == Side::right ? missing : half);
  const bool is_data = bound.has(1) && bound.text(1).is_data(0);
  TextBuilder out(in.meter());
  out.fill(before, fill, is_data);
  out.append(self.text());
  out.fill(missing - before, fill, is_data);
  return in.heap().text(out);
}

Value zero_fill(Interpreter& in, const Value& self, const Arguments& arguments) {
  const Bound bound("zfill", arguments, {"width"}, 1);
  const std::int64_t width = bound.whole(0, 0), size = length(self);
  const bool has_sign = self.bytes().starts_with('-') || self.bytes().starts_with('+');
  TextBuilder out(in.meter());
  out.append(self.text(), 0, has_sign ? 1 : 0);
  out.fill(static_cast<std::size_t>(width > size ? width - size : 0), "0", false);
  out.append(self.text(), has_sign ? 1 : 0, self.bytes().size());
  return in.heap().text(out);
}

Value format(Interpreter& in, const Value& self, const Arguments& arguments) {
  return brace_format(self.text(), arguments, in.heap());
}

struct Named {
  std::string_view name;
  Method::Call call;
};

constexpr Named kMethods[] = {
    {"strip", strip_both},
    {"lstrip", strip_left},
    {"rstrip", strip_right},
    {"split", split},
    {"rsplit", split_right},
    {"splitlines", lines},
    {"startswith", starts_with},
    {"endswith", ends_with},
    {"replace", replace},
    {"upper", mapped<to_upper>},
    {"lower", mapped<to_lower>},
    {"title", mapped<to_title>},
    {"capitalize", mapped<capitalized>},
    {"swapcase", mapped<swapped_case>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"join", join},
    {"isdigit", all_characters<is_digit>},
    {"isalpha", all_characters<is_alpha>},
    {"isalnum", all_characters<is_alnum>},
    {"isspace", all_characters<is_space>},
    {"isupper", all_cased<is_upper>},
    {"islower", all_cased<is_lower>},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"ljust", justify<Side::left>},
    {"rjust", justify<Side::right>},
    {"center", justify<Side::both>},
    {"zfill", zero_fill},
    {"format", format},
};

constexpr std::string_view kRefused[] = {"encode",      "casefold",  "expandtabs", "format_map",
                                         "isascii",     "isdecimal", "isnumeric",  "isidentifier",
                                         "isprintable", "istitle",   "maketrans",  "translate"};

}  // namespace

Method::Call find_text_method(std::string_view name) {
  if (std::ranges::find(kRefused, name) != std::end(kRefused)) {
    fail_unsupported("the string method '" + std::string(name) + "'");
  }
  const auto* found = std::ranges::find(kMethods, name, &Named::name);
  return found == std::end(kMethods) ? nullptr : found->call;
}

}  // namespace troupe::jinja
