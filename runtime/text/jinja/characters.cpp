#include "runtime/text/jinja/characters.h"

#include <algorithm>
#include <span>

#include "runtime/text/jinja/unicode_tables.h"
#include "runtime/text/utf8.h"

namespace troupe::jinja {
namespace {

constexpr char32_t kStrayByte = 0xDC00;

bool is_stray(char32_t code) {
  return code >= kStrayByte + 0x80 && code <= kStrayByte + 0xFF;
}

}  // namespace

char32_t decode_character(std::string_view text, std::size_t& length) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  length = utf8_character(text);
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    default:
      length = 1;
      return kStrayByte + byte(0);
  }
}

void encode_character(char32_t code, std::string& out) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (is_stray(code)) {
    put(code - kStrayByte);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const auto byte = static_cast<unsigned char>(text[at]);
    at += byte < 0x80 ? 1 : std::max<std::size_t>(1, utf8_character(text.substr(at)));
  }
  return count;
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; at < text.size() && index > 0; --index) {
    const auto byte = static_cast<unsigned char>(text[at]);
    at += byte < 0x80 ? 1 : std::max<std::size_t>(1, utf8_character(text.substr(at)));
  }
  return at;
}

std::vector<Character> characters(const Text& text, Meter& meter) {
  meter.take(text.size(), sizeof(Character));
  std::vector<Character> result;
  result.reserve(text.size());
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    const char32_t code = decode_character(std::string_view(text.bytes()).substr(at), length);
    result.push_back({code, text.is_data(at)});
  }
  return result;
}

void append(TextBuilder& out, Character character) {
  std::string bytes;
  encode_character(character.code, bytes);
  out.append(bytes, character.is_data);
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t code) {
  if (is_stray(code)) return false;
  const auto after = std::ranges::upper_bound(unprintable_ranges(), code, {}, &CodeRange::first);
  return after == unprintable_ranges().begin() || code > std::prev(after)->last;
}

namespace {

template <class Strip>
ByteRange strip_where(std::string_view text, bool left, bool right, Strip strip) {
  std::size_t begin = 0, end = text.size(), length = 0;
  while (left && begin < end && strip(decode_character(text.substr(begin), length))) begin += length;
  while (right && end > begin) {
    std::size_t start = end - 1;  // back to the first byte of the last character
    while (start > begin && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    char32_t code = decode_character(text.substr(start, end - start), length);
    if (start + length != end) code = decode_character(text.substr(start = end - 1, 1), length);
    if (!strip(code)) break;
    end = start;
  }
  return {begin, end};
}

}  // namespace

ByteRange stripped_of_space(std::string_view text, bool left, bool right) {
  return strip_where(text, left, right, is_space);
}

ByteRange stripped(std::string_view text, std::string_view set, bool left, bool right) {
  std::u32string wanted;
  for (std::size_t at = 0, length = 0; at < set.size(); at += length) {
    wanted += decode_character(set.substr(at), length);
  }
  std::ranges::sort(wanted);
  return strip_where(text, left, right, [&](char32_t code) { return std::ranges::binary_search(wanted, code); });
}

}  // namespace troupe::jinja
