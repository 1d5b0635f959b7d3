// Failure: why a template cannot be read or rendered. The one exception of the template language.
//
// It is thrown anywhere inside this folder and caught at its border (runtime/text/chat_template.cpp), where it becomes
// an Error with the line and the construct. It never leaves that border.
#pragma once

#include <stdexcept>
#include <string>

namespace troupe::jinja {

class Failure : public std::runtime_error {
 public:
  enum class Kind {
    syntax,       // the source is not a template
    unsupported,  // a template, but with something that this subset does not have
    undefined,    // a missing name or attribute was used
    runtime,      // wrong types or values, as Python would raise
    security,     // something that the sandbox forbids: changing a list, looking behind an object
    raised,       // the template called raise_exception()
    budget,       // over the limits of this rendering
  };

  Failure(Kind kind, const std::string& message, int line = 0)
      : std::runtime_error(message), kind_(kind), line_(line) {}

  Kind kind() const { return kind_; }
  int line() const { return line_; }  // 0: wherever the interpreter stands

 private:
  Kind kind_;
  int line_;
};

[[noreturn]] inline void fail_runtime(const std::string& message) {
  throw Failure(Failure::Kind::runtime, message);
}
[[noreturn]] inline void fail_unsupported(const std::string& message) {
  throw Failure(Failure::Kind::unsupported, message);
}

}  // namespace troupe::jinja
