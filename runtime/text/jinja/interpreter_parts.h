// What the Interpreter does for a while and takes back at the end of a block, thrown through or not.
#pragma once

#include "runtime/text/jinja/interpreter.h"

namespace troupe::jinja {

// Names are defined in, and looked up from, `scope`.
class Interpreter::Inside {
 public:
  Inside(Interpreter& interpreter, Scope* scope) : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter_.scope_ = scope;
  }
  ~Inside() { interpreter_.scope_ = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
};

// Output goes to `out`.
class Interpreter::Into {
 public:
  Into(Interpreter& interpreter, TextBuilder& out) : interpreter_(interpreter), outer_(interpreter.out_) {
    interpreter_.out_ = &out;
  }
  ~Into() { interpreter_.out_ = outer_; }
  Into(const Into&) = delete;
  Into& operator=(const Into&) = delete;

 private:
  Interpreter& interpreter_;
  TextBuilder* outer_;
};

}  // namespace troupe::jinja
