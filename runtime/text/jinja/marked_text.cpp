#include "runtime/text/jinja/marked_text.h"

namespace troupe::jinja {

void TextBuilder::append(std::string_view bytes, bool is_data) {
  if (bytes.empty()) return;
  if (bytes.size() > most_bytes_ - text_.bytes_.size()) {
    throw Failure(Failure::Kind::budget, "it writes more than " + std::to_string(most_bytes_) + " bytes");
  }
  meter_->take(bytes.size());
  if (text_.bytes_.empty()) {
    text_.first_is_data_ = is_data;
  } else if (is_data != last_is_data_) {
    meter_->take(sizeof(std::size_t));
    text_.flips_.push_back(text_.bytes_.size());
  }
  last_is_data_ = is_data;
  text_.bytes_ += bytes;
}

void TextBuilder::append(const Text& text, std::size_t begin, std::size_t end) {
  text.each_run(begin, end, [&](std::string_view bytes, bool is_data) { append(bytes, is_data); });
}

void TextBuilder::fill(std::size_t count, std::string_view bytes, bool is_data) {
  if (bytes.empty() || count == 0) return;
  meter_->take(count, bytes.size());  // refused before the first byte is written; append() counts it again
  constexpr std::size_t kTogether = 1024;
  std::string together;
  for (std::size_t i = 0; i < std::min(count, kTogether); ++i) together += bytes;
  for (; count >= kTogether; count -= kTogether) append(together, is_data);
  append(std::string_view(together).substr(0, count * bytes.size()), is_data);
}

}  // namespace troupe::jinja
