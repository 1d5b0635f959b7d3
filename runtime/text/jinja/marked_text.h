// Text: a string that knows, for each of its bytes, whether the template wrote it or it came in as data.
//
// Every operation on strings keeps the marks, so that a control token can only be made of bytes that the template
// itself wrote, however a message was cut and joined. Immutable once built; built by a TextBuilder, which asks the
// Meter for every byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/jinja/meter.h"

namespace troupe::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool is_data) : bytes_(std::move(bytes)), first_is_data_(is_data) {}

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool is_data(std::size_t offset) const {
    return first_is_data_ != (((std::ranges::upper_bound(flips_, offset) - flips_.begin()) & 1) != 0);
  }

  // visit(std::string_view bytes, bool is_data) for each stretch of one owner in [begin, end).
  template <class Visit>
  void each_run(std::size_t begin, std::size_t end, Visit visit) const {
    auto flip = std::ranges::upper_bound(flips_, begin);
    bool data = first_is_data_ != (((flip - flips_.begin()) & 1) != 0);
    while (begin < end) {
      const std::size_t stop = flip == flips_.end() ? end : std::min(end, *flip++);
      visit(std::string_view(bytes_).substr(begin, stop - begin), data);
      data = !data;
      begin = stop;
    }
  }

 private:
  friend class TextBuilder;
  std::string bytes_;
  bool first_is_data_ = false;
  std::vector<std::size_t> flips_;  // offsets where the owner changes, ascending, none at 0 or at the end
};

class TextBuilder {
 public:
  explicit TextBuilder(Meter& meter, std::size_t most_bytes = std::string::npos)
      : meter_(&meter), most_bytes_(most_bytes) {}

  void append(std::string_view bytes, bool is_data);
  void append(const Text& text, std::size_t begin, std::size_t end);
  void append(const Text& text) { append(text, 0, text.size()); }
  // `count` times the same bytes.
  void fill(std::size_t count, std::string_view bytes, bool is_data);

  std::size_t size() const { return text_.size(); }
  Text finish() { return std::move(text_); }
  Meter& meter() { return *meter_; }

 private:
  Meter* meter_;
  std::size_t most_bytes_;
  Text text_;
  bool last_is_data_ = false;
};

}  // namespace troupe::jinja
