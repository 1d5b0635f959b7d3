// BatchView: all that a kernel knows of who is in a launch.
//
// A launch computes `rows()` rows (tokens). Every operation but attend() works on rows and does not know sequences.
// A SequenceView is one step's run of consecutive rows: row first_row + i is the token at position `position` + i of
// its sequence, and its keys and values go to slot (position + i) % 16 of page (position + i) / 16.
// Tokens 0 .. position-1 are already in the pages. Sequences are in row order and cover all rows, without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

struct SequenceView {
  std::byte* const* pages = nullptr;  // pages_for(position + rows) of them, each KvLayout::page_bytes() long
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  std::int32_t position = 0;  // tokens that stand before the first row
};

struct BatchView {
  std::span<const std::int32_t> tokens;     // [rows] token ids
  std::span<const std::int32_t> positions;  // [rows] position of each row in its own sequence
  std::span<const SequenceView> sequences;  // in row order
  std::span<std::uint8_t> faulty;           // [rows] set to 1 by a backend when a row met a non-finite value

  std::int32_t rows() const { return static_cast<std::int32_t>(tokens.size()); }
};

}  // namespace troupe
