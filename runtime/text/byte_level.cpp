#include "runtime/text/byte_level.h"

#include <array>
#include <cstdint>

namespace troupe {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<std::uint16_t, 256> make_code_points() {
  std::array<std::uint16_t, 256> table{};
  std::uint16_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table[byte] = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return table;
}

constexpr auto kCodePoint = make_code_points();

constexpr std::array<std::int16_t, 324> make_bytes() {
  std::array<std::int16_t, 324> table{};
  for (auto& entry : table) entry = -1;
  for (unsigned byte = 0; byte < 256; ++byte) table[kCodePoint[byte]] = static_cast<std::int16_t>(byte);
  return table;
}

constexpr auto kByte = make_bytes();

}  // namespace

std::optional<std::string> bytes_of_piece(std::string_view piece) {
  std::string out;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    unsigned code = static_cast<unsigned char>(piece[i]);
    if (code >= 0x80) {  // the alphabet ends at U+0143: two UTF-8 bytes suffice
      if ((code & 0xe0) != 0xc0 || i + 1 == piece.size()) return std::nullopt;
      code = (code & 0x1f) << 6 | (static_cast<unsigned char>(piece[++i]) & 0x3f);
    }
    if (code >= kByte.size() || kByte[code] < 0) return std::nullopt;
    out += static_cast<char>(kByte[code]);
  }
  return out;
}

std::string piece_of_bytes(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    const unsigned code = kCodePoint[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {
      out += static_cast<char>(0xc0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return out;
}

}  // namespace troupe
