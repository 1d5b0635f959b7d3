#include "runtime/text/utf8.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Lead {
  std::size_t length = 0;                 // 0: no character begins with this byte
  unsigned char low = 0x80, high = 0xbf;  // range of the second byte (Unicode table 3-7)
};

Lead lead(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xc2 && byte <= 0xdf) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

// How many bytes from the front agree with the character that the first byte begins, at most its length.
std::size_t agreeing(std::string_view text, const Lead& first) {
  std::size_t i = 1;
  for (; i < std::min(first.length, text.size()); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < (i == 1 ? first.low : 0x80) || byte > (i == 1 ? first.high : 0xbf)) break;
  }
  return i;
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const Lead first = lead(static_cast<unsigned char>(text[0]));
  if (first.length == 0) return 0;
  return agreeing(text, first) == first.length ? first.length : 0;
}

bool utf8_incomplete(std::string_view text) {
  if (text.empty()) return false;
  const Lead first = lead(static_cast<unsigned char>(text[0]));
  return first.length > text.size() && agreeing(text, first) == text.size();
}

std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const std::size_t length = utf8_character(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty() && !utf8_incomplete(rest)) {
    const std::size_t valid = utf8_valid_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty() || utf8_incomplete(rest)) break;
    out += kReplacement;
    const Lead first = lead(static_cast<unsigned char>(rest[0]));
    rest.remove_prefix(first.length == 0 ? 1 : agreeing(rest, first));
  }
  held_ = std::string(rest);
  return out;
}

std::string Utf8Stream::flush() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(kReplacement) : std::string();
}

}  // namespace troupe
