// The tile registers of AMX as amx_kernel.h uses them: eight registers of up to 16 rows x 64 bytes, of each thread.
// Only kernels that were chosen because TileRegisters says `granted` may call HardwareTiles.
//
// The instructions are written out, not taken from <immintrin.h>: there a register's number is a piece of text, no
// template argument, and g++ 12's `_tile_loadd` does not say that it reads memory, so that a store to the operand may
// be moved behind it.
#pragma once

#include <cstdint>
#include <cstring>

namespace troupe::cpu {

// The operand of ldtilecfg.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

}  // namespace troupe::cpu

namespace {

struct HardwareTiles {
  // Gives the registers these shapes, and zeroes them, unless they have them already. The processor is asked (about 20
  // cycles, loading takes some 200 by Intel's manual): a remembered answer would be wrong where another library on this
  // thread has used the registers since.
  static void shape(const troupe::cpu::TileShapes& wanted) {
    troupe::cpu::TileShapes present;
    asm volatile("sttilecfg %0" : "=m"(present));
    if (std::memcmp(&present, &wanted, sizeof wanted) != 0) asm volatile("ldtilecfg %0" : : "m"(wanted));
  }
  // Rows stand `stride` bytes apart; 0: all the same.
  template <int kTile>
  static void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  // c[row][n] += sum over k, i of a[row][4k + i] * b[k][4n + i]; int8 by int8 into int32.
  template <int kC, int kA, int kB>
  static void dot() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }
};

}  // namespace
