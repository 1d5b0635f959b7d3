// Filters on sequences and dicts: their length, ends, order, sums.
#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/print.h"
#include "runtime/text/jinja/sequences.h"
#include "runtime/text/jinja/variables_json.h"

namespace troupe::jinja {
namespace {

using Kind = Value::Kind;

std::vector<Value> copied(const Value& subject, Heap& heap) {
  const std::span<const Value> items = iterate(subject, heap);
  heap.meter().take(items.size(), sizeof(Value));
  return {items.begin(), items.end()};
}

Value length_of(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("length", arguments, {});
  if (subject.is_string()) in.meter().step(subject.bytes().size() / 64);
  return Value(length(subject));
}

Value list(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("list", arguments, {});
  return in.heap().list(copied(subject, in.heap()));
}

Value first(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("first", arguments, {});
  if (subject.is(Kind::list) && subject.list().flavor == List::Flavor::iterator) {
    List& iterator = subject.list();  // takes one item, not all
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
  }
  const std::span<const Value> items = iterate(subject, in.heap());
  return items.empty() ? in.heap().undefined("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("last", arguments, {});
  if (subject.is(Kind::list) && subject.list().flavor == List::Flavor::iterator) {
    fail_runtime("'generator' object is not reversible");
  }
  const std::span<const Value> items = iterate(subject, in.heap());
  return items.empty() ? in.heap().undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("reverse", arguments, {});
  std::vector<Value> items = copied(subject, in.heap());
  std::ranges::reverse(items);
  if (subject.is_string()) return joined(Text(), items, in.heap());
  return in.heap().list(std::move(items), List::Flavor::iterator);
}

Value items(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("items", arguments, {});
  std::vector<Value> pairs;
  if (!subject.is(Kind::dict) && !subject.is_undefined()) fail_runtime("Can only get item pairs from a mapping.");
  if (subject.is(Kind::dict)) {
    for (const auto& [key, value] : subject.dict().entries()) {
      pairs.push_back(in.heap().list({key, value}, List::Flavor::tuple));
    }
  }
  return in.heap().list(std::move(pairs), List::Flavor::iterator);
}

// What an item is ordered by: an attribute of it, its strings without case unless that matters.
Value sort_key(const Value& item, const Bound& bound, std::size_t attribute, bool case_sensitive, Heap& heap) {
  Value key = item;
  if (bound.has(attribute) && !bound[attribute].is(Kind::none)) {
    const Value& path = bound[attribute];
    if (path.is_string() && path.bytes().find(',') != std::string::npos) fail_unsupported("sorting by two attributes");
    key = path.is_whole() ? jinja::item(item, path, heap) : attribute_path(item, bound.text(attribute).bytes(), heap);
  }
  if (case_sensitive || !key.is_string()) return key;
  return heap.text(to_lower(key.text(), heap.meter()));
}

struct Keyed {
  Value key, item;
};

std::vector<Keyed> keyed(const Value& subject, const Bound& bound, std::size_t attribute, bool case_sensitive,
                         Heap& heap) {
  std::vector<Keyed> result;
  for (const Value& item : iterate(subject, heap)) {
    heap.meter().take(sizeof(Keyed));
    result.push_back({sort_key(item, bound, attribute, case_sensitive, heap), item});
  }
  return result;
}

void order(std::vector<Keyed>& items, bool reverse, Meter& meter) {
  std::ranges::stable_sort(items, [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key, meter) : less(a.key, b.key, meter);
  });
}

Value sort(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> pairs = keyed(subject, bound, 2, bound.truth(1, false), in.heap());
  order(pairs, bound.truth(0, false), in.meter());
  std::vector<Value> sorted;
  sorted.reserve(pairs.size());
  for (const Keyed& pair : pairs) sorted.push_back(pair.item);
  return in.heap().list(std::move(sorted));
}

Value dict_sort(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  require_defined(subject);
  if (!subject.is(Kind::dict)) fail_runtime("dictsort() wants a dict, not '" + std::string(type_name(subject)) + "'");
  const std::string by = bound.has(1) ? bound.text(1).bytes() : "key";
  if (by != "key" && by != "value") fail_runtime("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> pairs;
  for (const auto& [key, value] : subject.dict().entries()) {
    Value sorted_by = by == "key" ? key : value;
    if (!bound.truth(0, false) && sorted_by.is_string()) {
      sorted_by = in.heap().text(to_lower(sorted_by.text(), in.meter()));
    }
    pairs.push_back({sorted_by, in.heap().list({key, value}, List::Flavor::tuple)});
  }
  order(pairs, bound.truth(2, false), in.meter());
  std::vector<Value> sorted;
  sorted.reserve(pairs.size());
  for (const Keyed& pair : pairs) sorted.push_back(pair.item);
  return in.heap().list(std::move(sorted));
}

template <bool wants_largest>
Value extreme(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("max", arguments, {"case_sensitive", "attribute"});
  const std::vector<Keyed> pairs = keyed(subject, bound, 1, bound.truth(0, false), in.heap());
  if (pairs.empty()) return in.heap().undefined("No aggregated item, sequence was empty.");
  const Keyed* best = &pairs[0];
  for (const Keyed& pair : pairs) {
    const bool better =
        wants_largest ? less(best->key, pair.key, in.meter(), ">") : less(pair.key, best->key, in.meter());
    if (better) best = &pair;
  }
  return best->item;
}

Value unique(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  Dict seen;
  std::vector<Value> kept;
  for (const Keyed& pair : keyed(subject, bound, 1, bound.truth(0, false), in.heap())) {
    require_hashable(pair.key);
    if (seen.find(pair.key, in.meter()) != nullptr) continue;
    seen.set(pair.key, pair.item, in.meter());
    kept.push_back(pair.item);
  }
  return in.heap().list(std::move(kept), List::Flavor::iterator);
}

Value sum(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.value_or(1, Value(std::int64_t{0}));
  if (total.is_string()) fail_runtime("sum() can't sum strings");
  for (const Keyed& pair : keyed(subject, bound, 0, true, in.heap())) {
    total = arithmetic(Arithmetic::add, total, pair.key, in.heap());
  }
  return total;
}

Value from_json(Interpreter& in, const Value& subject, const Arguments& arguments) {
  const Bound bound("from_json", arguments, {});
  require_defined(subject);
  if (!subject.is_string()) fail_runtime("from_json() wants a string, not '" + std::string(type_name(subject)) + "'");
  return read_json(subject.bytes(), in.heap(), subject.text().size() != 0 && subject.text().is_data(0));
}

constexpr Filter kSequenceFilters[] = {
    {"length", length_of, 1}, {"count", length_of, 1},     {"list", list, 1},          {"first", first, 1},
    {"last", last, 1},        {"items", items, 1},         {"dictsort", dict_sort, 2}, {"reverse", reverse, 3},
    {"sort", sort, 3},        {"max", extreme<true>, 3},   {"min", extreme<false>, 3}, {"unique", unique, 3},
    {"sum", sum, 3},          {"from_json", from_json, 3},
};

}  // namespace

const Filter* find_sequence_filter(std::string_view name) {
  const auto* found = std::ranges::find(kSequenceFilters, name, &Filter::name);
  return found == std::end(kSequenceFilters) ? nullptr : found;
}

}  // namespace troupe::jinja
