#include "runtime/text/jinja/arguments.h"

#include <algorithm>

#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {

Bound::Bound(std::string_view callee, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
             std::size_t required)
    : callee_(callee), values_(parameters.size()), given_(parameters.size()) {
  if (arguments.positional.size() > parameters.size()) {
    fail_runtime(callee_ + "() takes at most " + std::to_string(parameters.size()) + " arguments, not " +
                 std::to_string(arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = arguments.positional[i];
    given_[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::ranges::find(parameters, name);
    if (found == parameters.end()) fail_runtime(callee_ + "() has no argument '" + std::string(name) + "'");
    const auto i = static_cast<std::size_t>(found - parameters.begin());
    if (given_[i]) fail_runtime(callee_ + "() got several values for the argument '" + std::string(name) + "'");
    values_[i] = value;
    given_[i] = true;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!given_[i]) fail_runtime(callee_ + "() misses the argument '" + std::string(parameters.begin()[i]) + "'");
  }
}

bool Bound::truth(std::size_t i, bool otherwise) const {
  return given_[i] ? jinja::truth(values_[i]) : otherwise;
}

std::int64_t Bound::whole(std::size_t i, std::int64_t otherwise) const {
  if (!given_[i]) return otherwise;
  require_defined(values_[i]);
  if (!values_[i].is_whole()) {
    fail_runtime(callee_ + "() wants an integer, not '" + std::string(type_name(values_[i])) + "'");
  }
  return values_[i].integer();
}

const Text& Bound::text(std::size_t i) const {
  require_defined(values_[i]);
  if (!values_[i].is_string()) {
    fail_runtime(callee_ + "() wants a string, not '" + std::string(type_name(values_[i])) + "'");
  }
  return values_[i].text();
}

}  // namespace troupe::jinja
