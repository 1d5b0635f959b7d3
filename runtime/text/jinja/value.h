// Value: what a template computes with. Small, copied freely; what it points to belongs to a Heap (heap.h) and never
// changes, except namespaces, loops and the reading position of an iterator.
//
// The kinds are Python's as templates see them. Integers have 64 bits; a longer literal or JSON number is kept as its
// digits (big_integer) and can be printed and compared for equality, nothing more: arithmetic that would leave 64 bits
// is refused, never wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/text/jinja/marked_text.h"

namespace troupe::jinja {

struct List;
class Dict;
struct Undefined;
struct Namespace;
struct Macro;
struct Loop;
struct Method;
struct Function;

class Value {
 public:
  enum class Kind : std::uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    big_integer,
    string,
    list,
    dict,
    name_space,
    macro,
    loop,
    method,
    function,
  };

  Value() : Value(Kind::none) {}
  Value(bool b) : kind_(Kind::boolean) { as_.boolean = b; }
  Value(std::int64_t i) : kind_(Kind::integer) { as_.integer = i; }
  Value(double d) : kind_(Kind::real) { as_.real = d; }
  Value(const Text* text) : kind_(Kind::string) { as_.text = text; }
  Value(List* list) : kind_(Kind::list) { as_.list = list; }
  Value(const Dict* dict) : kind_(Kind::dict) { as_.dict = dict; }
  Value(const Undefined* undefined) : kind_(Kind::undefined) { as_.undefined = undefined; }
  Value(Namespace* space) : kind_(Kind::name_space) { as_.space = space; }
  Value(const Macro* macro) : kind_(Kind::macro) { as_.macro = macro; }
  Value(Loop* loop) : kind_(Kind::loop) { as_.loop = loop; }
  Value(const Method* method) : kind_(Kind::method) { as_.method = method; }
  Value(const Function* function) : kind_(Kind::function) { as_.function = function; }
  template <class T>
  Value(T*) = delete;  // no pointer becomes a bool unasked
  static Value digits(const Text* text) {
    Value value(text);
    value.kind_ = Kind::big_integer;
    return value;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  // Python's int, which bool is one of.
  bool is_whole() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_whole() || kind_ == Kind::real; }

  bool boolean() const { return as_.boolean; }
  std::int64_t integer() const { return kind_ == Kind::boolean ? (as_.boolean ? 1 : 0) : as_.integer; }
  double real() const { return kind_ == Kind::real ? as_.real : static_cast<double>(integer()); }
  const Text& text() const { return *as_.text; }  // string and big_integer
  const std::string& bytes() const { return as_.text->bytes(); }
  List& list() const { return *as_.list; }
  const Dict& dict() const { return *as_.dict; }
  const Undefined& undefined() const { return *as_.undefined; }
  Namespace& space() const { return *as_.space; }
  const Macro& macro() const { return *as_.macro; }
  Loop& loop() const { return *as_.loop; }
  const Method& method() const { return *as_.method; }
  const Function& function() const { return *as_.function; }
  // Which object, for kinds that are compared by identity.
  const void* object() const { return as_.text; }

 private:
  explicit Value(Kind kind) : kind_(kind) { as_.integer = 0; }

  Kind kind_;
  union {
    bool boolean;
    std::int64_t integer;
    double real;
    const Text* text;
    List* list;
    const Dict* dict;
    const Undefined* undefined;
    Namespace* space;
    const Macro* macro;
    Loop* loop;
    const Method* method;
    const Function* function;
  } as_;
};

// Everything that Python would give as a sequence or an iterator, with the differences that templates can see.
struct List {
  enum class Flavor : std::uint8_t { list, tuple, range, keys, values, items, iterator };
  Flavor flavor = Flavor::list;
  std::vector<Value> items;
  std::size_t next = 0;  // iterator only: what was read is gone

  bool is_indexable() const { return flavor == Flavor::list || flavor == Flavor::tuple || flavor == Flavor::range; }
  bool has_length() const { return flavor != Flavor::iterator; }
};

// In order of insertion. A key that comes again keeps its place and its first form (Python: {1: 'a', True: 'b'}).
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key, Meter& meter) const;
  void set(const Value& key, const Value& value, Meter& meter);

 private:
  std::size_t position(const Value& key, Meter& meter) const;  // size() if absent

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, std::size_t> strings_;
  std::size_t others_ = 0;  // entries whose key is no string
};

struct Undefined {
  std::string message;       // what its use raises: "'x' is undefined"
  bool is_security = false;  // what its use raises is the sandbox's refusal
};

struct Namespace {
  Dict attributes;
};

// The name of a value's Python type, for messages: "str", "NoneType".
std::string_view type_name(const Value& value);

}  // namespace troupe::jinja
