// The tile registers of AMX in plain code, instruction by instruction after the pseudo-code of Intel's Software
// Developer's Manual: for machines without them. What the processor answers with #UD or #GP throws here.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "kernels/cpu/amx_tiles.h"

namespace {

struct EmulatedTiles {
  static constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;  // of palette 1

  struct State {
    troupe::cpu::TileShapes shapes{.palette = 0};
    std::uint8_t data[kTiles][kRows][kRowBytes] = {};
  };
  static State& state() {  // as the processor's: one a thread, not configured at first
    static thread_local State one;
    return one;
  }
  static void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
  }

  // ldtilecfg where sttilecfg tells of other shapes, as HardwareTiles::shape.
  static void shape(const troupe::cpu::TileShapes& wanted) {
    if (std::memcmp(&state().shapes, &wanted, sizeof wanted) == 0) return;
    require(wanted.palette == 1 && wanted.start_row == 0, "#GP: palette or start row");
    for (std::uint8_t byte : wanted.reserved) require(byte == 0, "#GP: reserved byte");
    for (int i = 0; i < 16; ++i) {
      const int rows = wanted.rows[i], bytes = wanted.row_bytes[i];
      require(i < kTiles || (rows == 0 && bytes == 0), "#GP: tile that palette 1 has not");
      require(rows <= kRows && bytes <= kRowBytes && (rows == 0) == (bytes == 0), "#GP: shape of a tile");
    }
    state().shapes = wanted;
    std::memset(state().data, 0, sizeof state().data);
  }

  template <int kTile>
  static void load(const void* from, std::int64_t stride) {
    const int rows = rows_of(kTile), bytes = bytes_of(kTile);
    auto& tile = state().data[kTile];
    std::memset(tile, 0, sizeof tile);  // the rest of each row, and the upper rows
    for (int row = 0; row < rows; ++row) {
      std::memcpy(tile[row], static_cast<const std::byte*>(from) + row * stride, static_cast<std::size_t>(bytes));
    }
  }

  template <int kTile>
  static void store(void* to, std::int64_t stride) {
    const int rows = rows_of(kTile), bytes = bytes_of(kTile);
    for (int row = 0; row < rows; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * stride, state().data[kTile][row],
                  static_cast<std::size_t>(bytes));
    }
  }

  // tdpbssd
  template <int kC, int kA, int kB>
  static void dot() {
    static_assert(kC != kA && kC != kB && kA != kB, "#UD: a tile twice");
    const int rows = rows_of(kC), fours = bytes_of(kA) / 4;
    require(bytes_of(kC) % 4 == 0 && bytes_of(kA) % 4 == 0 && bytes_of(kB) % 4 == 0, "#UD: no whole dwords");
    require(rows_of(kA) == rows && rows_of(kB) == fours && bytes_of(kB) == bytes_of(kC), "#UD: shapes do not fit");
    for (int m = 0; m < rows; ++m) {
      std::int32_t c[kRowBytes / 4];
      std::memcpy(c, state().data[kC][m], sizeof c);
      for (int k = 0; k < fours; ++k) {
        for (int n = 0; n < bytes_of(kC) / 4; ++n)
          c[n] += dot4(state().data[kA][m] + 4 * k, state().data[kB][k] + 4 * n);
      }
      std::memcpy(state().data[kC][m], c, sizeof c);  // what is past the row's bytes stays zero
    }
  }

 private:
  static std::int32_t dot4(const std::uint8_t* a, const std::uint8_t* b) {
    std::int32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<std::int8_t>(a[i]) * static_cast<std::int8_t>(b[i]);
    return sum;
  }
  static int rows_of(int tile) {
    require(state().shapes.palette != 0, "#UD: tiles are not configured");
    require(state().shapes.rows[tile] != 0, "#UD: tile without rows");
    return state().shapes.rows[tile];
  }
  static int bytes_of(int tile) { return state().shapes.row_bytes[tile]; }
};

}  // namespace
