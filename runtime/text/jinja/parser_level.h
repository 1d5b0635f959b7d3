// One level of the parser's recursion, for as long as it lives.
#pragma once

#include "runtime/text/jinja/parser.h"

namespace troupe::jinja {

class Parser::Level {
 public:
  explicit Level(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting) {
      parser_.unsupported("nesting deeper than " + std::to_string(kMaxNesting) + " levels");
    }
  }
  ~Level() { --parser_.nesting_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Parser& parser_;
};

}  // namespace troupe::jinja
