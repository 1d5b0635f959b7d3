// From a file's blocks to the words of a tile: what 32 inputs of one row are in the layout of tiles.h.
//
// There, four inputs of a row are four neighbouring bytes, in every format; so a row's part of a block is 4 to 8 words
// of 4 bytes, and each is a few operations on whole words of the file. (A nibble at a time, a load spent 2 ns on each
// weight: twice what reading 0.6 bytes of it takes from a warm file.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {

// [4 words of nibbles] and 1 (5 bits) or 2 (6 bits) of upper bits; 8 words of bytes for 8 bits.
template <int kBits>
using RowWords = std::array<std::uint32_t, kBits>;

inline std::uint32_t word(const std::byte* at, int index) {
  std::uint32_t value;
  std::memcpy(&value, at + 4 * index, sizeof value);
  return value;
}

// Word j of row r belongs into vector j of the block.
template <int kBits>
void put_words(std::byte* block, int r, const RowWords<kBits>& words) {
  for (int j = 0; j < kBits; ++j) std::memcpy(block + 64 * j + 4 * r, &words[static_cast<std::size_t>(j)], 4);
}

// Bits 0, 4, 8 .. 28 as bits 0 .. 7.
inline std::uint32_t every_fourth_bit(std::uint32_t bits) {
  bits &= 0x11111111u;
  bits = (bits | bits >> 3) & 0x03030303u;
  bits = (bits | bits >> 6) & 0x000f000fu;
  return (bits | bits >> 12) & 0xffu;
}

// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, from behind the block's scales. Their nibbles are paired as a tile's are.
template <int kBits>
RowWords<kBits> words_of_block(const std::byte* levels) {
  RowWords<kBits> words;
  const std::byte* nibbles = levels + (kBits == 5 ? 4 : 0);
  for (int j = 0; j < (kBits == 8 ? 8 : 4); ++j) words[static_cast<std::size_t>(j)] = word(nibbles, j);
  if constexpr (kBits == 8) {
    for (std::uint32_t& one : words) one ^= 0x80808080u;  // q + 128 of each byte
  }
  if constexpr (kBits == 5) {
    words[4] = 0;
    for (int i = 0; i < 4; ++i) words[4] |= every_fourth_bit(word(levels, 0) >> i) << (8 * i);
  }
  return words;
}

// 32 bytes that hold the wanted nibbles from bit `shift` on: inputs 0 .. 15 become the low ones.
template <std::size_t kWords>
void pair_nibbles(const std::byte* bytes, int shift, std::array<std::uint32_t, kWords>& words) {
  constexpr std::uint32_t kNibbles = 0x0f0f0f0fu;
  for (int j = 0; j < 4; ++j) {
    words[static_cast<std::size_t>(j)] = (word(bytes, j) >> shift & kNibbles) | (word(bytes, 4 + j) >> shift & kNibbles)
                                                                                    << 4;
  }
}

// Group g of a Q4_K or Q5_K block.
template <int kBits>
RowWords<kBits> words_of_group(const std::byte* high, const std::byte* nibbles, int g) {
  RowWords<kBits> words;
  pair_nibbles(nibbles + 32 * (g / 2), g % 2 * 4, words);
  if constexpr (kBits == 5) {
    words[4] = 0;
    for (int j = 0; j < 8; ++j) words[4] |= (word(high, j) >> g & 0x01010101u) << j;
  }
  return words;
}

// Inputs 32g .. 32g + 31 of a Q6_K block.
inline RowWords<6> words_of_six(const std::byte* low, const std::byte* high, int g) {
  RowWords<6> words{};
  const int half = g / 4, quarter = g % 4;
  pair_nibbles(low + 64 * half + 32 * (quarter % 2), quarter < 2 ? 0 : 4, words);
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t bits = word(high + 32 * half, j) >> (2 * quarter) & 0x03030303u;
    words[static_cast<std::size_t>(4 + j / 4)] |= bits << (2 * (j % 4));
  }
  return words;
}

}  // namespace troupe::cpu
