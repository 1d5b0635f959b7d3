// The arguments of a call, and their binding to named parameters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

struct Arguments {
  using Named = std::pair<std::string_view, Value>;
  std::vector<Value> positional;
  std::vector<Named> named;
};

// Arguments in the order of the parameters; raises as Python does for too many, unknown, double and missing ones.
class Bound {
 public:
  Bound(std::string_view callee, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
        std::size_t required = 0);

  bool has(std::size_t i) const { return given_[i]; }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  Value value_or(std::size_t i, const Value& otherwise) const { return given_[i] ? values_[i] : otherwise; }

  bool truth(std::size_t i, bool otherwise) const;
  std::int64_t whole(std::size_t i, std::int64_t otherwise) const;
  // A string; anything else raises.
  const Text& text(std::size_t i) const;

 private:
  std::string callee_;
  std::vector<Value> values_;
  std::vector<bool> given_;
};

}  // namespace troupe::jinja
