// Filters whose result is a string.
#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/json_text.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

Value trim(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const Value text = to_string(subject, in.heap());
  in.meter().step(text.bytes().size() / 64);
  const bool space = !bound.has(0) || bound[0].is(Kind::none);
  const ByteRange kept =
      space ? stripped_of_space(text.bytes(), true, true) : stripped(text.bytes(), bound.text(0).bytes(), true, true);
  TextBuilder out(in.meter());
  out.append(text.text(), kept.begin, kept.end);
  return in.heap().text(out);
}

template <Text (*mapping)(const Text&, Meter&)>
Value mapped(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("the filter", arguments, {});
  return in.heap().text(mapping(to_string(subject, in.heap()).text(), in.meter()));
}

Value string(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("string", arguments, {});
  return to_string(subject, in.heap());
}

// Jinja's title begins a word only behind blanks and - ( { [ <, unlike str.title().
Text titled(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  std::size_t begin = 0, length = 0;
  const auto word = [&](std::size_t end) {
    if (begin == end) return;
    std::size_t first = 0;
    decode_character(std::string_view(text.bytes()).substr(begin), first);
    TextBuilder head(meter), tail(meter);
    head.append(text, begin, begin + first);
    tail.append(text, begin + first, end);
    out.append(to_upper(head.finish(), meter));
    out.append(to_lower(tail.finish(), meter));
  };
  for (std::size_t at = 0; at < text.size(); at += length) {
    const char32_t code = decode_character(std::string_view(text.bytes()).substr(at), length);
    if (!is_space(code) &&
        (code > 0x7F || std::string_view("-({[<").find(static_cast<char>(code)) == std::string_view::npos)) {
      continue;
    }
    word(at);
    out.append(text, at, at + length);
    begin = at + length;
  }
  word(text.size());
  return out.finish();
}

Value replace(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::int64_t most = bound.has(2) && bound[2].is(Kind::none) ? -1 : bound.whole(2, -1);
  const Value text = to_string(subject, in.heap()), old = to_string(bound[0], in.heap()),
              with = to_string(bound[1], in.heap());
  return in.heap().text(replaced(text.text(), old.bytes(), with.text(), most, in.meter()));
}

Value join(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const Value separator = bound.has(0) ? to_string(bound[0], in.heap()) : in.heap().text("");
  std::vector<Value> parts;
  for (const Value& item : iterate(subject, in.heap())) {
    const bool whole = !bound.has(1) || bound[1].is(Kind::none);
    parts.push_back(to_string(whole ? item : attribute_path(item, bound.text(1).bytes(), in.heap()), in.heap()));
  }
  return joined(separator.text(), parts, in.heap());
}

// One level of tojson's indent: none, a number of blanks, or a string.
void set_indent(const Value& value, JsonStyle& style, Meter& meter) {
  if (value.is(Kind::none)) return;
  style.is_indented = true;
  style.between_items = ",";
  if (value.is_string()) {
    style.indent = value.bytes();
  } else if (value.is_whole()) {
    const auto blanks = static_cast<std::size_t>(std::max<std::int64_t>(0, value.integer()));
    meter.take(blanks);
    style.indent.assign(blanks, ' ');
  } else {
    fail_runtime("tojson() wants an integer or a string as indent");
  }
}

void set_separators(const Value& value, JsonStyle& style) {
  if (value.is(Kind::none)) return;
  const bool is_pair = value.is(Kind::list) && value.list().items.size() == 2 && value.list().items[0].is_string() &&
                       value.list().items[1].is_string();
  if (!is_pair) fail_runtime("tojson() wants a pair of strings as separators");
  style.between_items = value.list().items[0].bytes();
  style.after_key = value.list().items[1].bytes();
}

Value to_json(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.truth(0, false);
  style.sort_keys = bound.truth(3, false);
  if (bound.has(1)) set_indent(bound[1], style, in.meter());
  if (bound.has(2)) set_separators(bound[2], style);
  TextBuilder out(in.meter());
  print_json(subject, style, out);
  return in.heap().text(out);
}

Value escape(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("escape", arguments, {});
  static constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  const Value whole = to_string(subject, in.heap());
  const Text& text = whole.text();
  TextBuilder out(in.meter());
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto* found = std::ranges::find(kEscapes, text.bytes()[at], &std::pair<char, std::string_view>::first);
    if (found == std::end(kEscapes)) continue;
    out.append(text, plain, at);
    out.append(found->second, text.is_data(at));
    plain = at + 1;
  }
  out.append(text, plain, text.size());
  return in.heap().text(out);
}

Value indent(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  require_defined(subject);
  if (!subject.is_string()) fail_runtime("indent() wants a string, not '" + std::string(type_name(subject)) + "'");
  TextBuilder margin(in.meter());
  if (bound.has(0) && bound[0].is_string()) {
    margin.append(bound.text(0));
  } else {
    margin.fill(static_cast<std::size_t>(std::max<std::int64_t>(0, bound.whole(0, 4))), " ", false);
  }
  const Text prefix = margin.finish();
  TextBuilder ended(in.meter());  // Jinja adds the newline so that there is a first line
  ended.append(subject.text());
  ended.append("\n", false);
  const Text text = ended.finish();
  const std::vector<Value> lines = split_lines(text, in.heap());
  TextBuilder out(in.meter());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n", false);
    const bool wanted = i == 0 ? bound.truth(1, false) : (bound.truth(2, false) || lines[i].text().size() != 0);
    if (wanted) out.append(prefix);
    out.append(lines[i].text());
  }
  return in.heap().text(out);
}

Value format(Interpreter& in, const Value& subject, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    fail_runtime("can't handle positional and keyword arguments at the same time");
  }
  const Value text = to_string(subject, in.heap());
  if (arguments.named.empty()) {
    return percent_format(text.text(), in.heap().list(arguments.positional, List::Flavor::tuple), in.heap());
  }
  Dict values;
  for (const auto& [name, value] : arguments.named) values.set(in.heap().text(name), value, in.meter());
  return percent_format(text.text(), in.heap().dict(std::move(values)), in.heap());
}

constexpr Filter kTextFilters[] = {
    {"trim", trim, 1},
    {"tojson", to_json, 1},
    {"join", join, 1},
    {"string", string, 1},
    {"safe", string, 2},
    {"upper", mapped<to_upper>, 2},
    {"lower", mapped<to_lower>, 2},
    {"capitalize", mapped<capitalized>, 2},
    {"replace", replace, 2},
    {"title", mapped<titled>, 3},
    {"escape", escape, 3},
    {"e", escape, 3},
    {"indent", indent, 3},
    {"format", format, 3},
};

}  // namespace

const Filter* find_text_filter(std::string_view name) {
  const auto* found = std::ranges::find(kTextFilters, name, &Filter::name);
  return found == std::end(kTextFilters) ? nullptr : found;
}

const Filter* find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_sequence_filter, find_choosing_filter, find_number_filter}) {
    if (const Filter* filter = find(name)) return filter;
  }
  return nullptr;
}

}  // namespace troupe::jinja
