// The emulated tile registers do what Intel's pseudo-code says; where real ones are, both give the same bytes.
#include "kernels/cpu/amx_tiles.h"

#include <array>
#include <gtest/gtest.h>

#include "kernels/backend.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/random.h"

namespace troupe::test {
namespace {

constexpr std::int8_t kUntouched = 77;
using Bytes = std::array<std::int8_t, 17 * 64>;  // a tile's memory and a row behind it

cpu::TileShapes shapes_of(int rows, int fours, int outputs) {
  cpu::TileShapes shapes;
  const auto set = [&](int tile, int tile_rows, int row_bytes) {
    shapes.rows[tile] = static_cast<std::uint8_t>(tile_rows);
    shapes.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  };
  set(0, rows, 4 * outputs);
  set(4, rows, 4 * fours);
  set(6, fours, 4 * outputs);
  return shapes;
}

struct Operands {
  Bytes a, b, c;
};

Operands random_operands(Random& random) {
  Operands operands;
  for (Bytes* bytes : {&operands.a, &operands.b, &operands.c}) {
    for (std::int8_t& byte : *bytes) byte = static_cast<std::int8_t>(random.below(256) - 128);
  }
  return operands;
}

// c + a x b + a x b, as stored.
template <class Tiles>
Bytes product(const cpu::TileShapes& shapes, const Operands& operands) {
  Bytes out;
  out.fill(kUntouched);
  Tiles::shape(shapes);
  Tiles::template load<0>(operands.c.data(), 64);
  Tiles::template load<4>(operands.a.data(), 32);
  Tiles::template load<6>(operands.b.data(), 64);
  Tiles::template dot<0, 4, 6>();
  Tiles::template dot<0, 4, 6>();
  Tiles::template store<0>(out.data(), 64);
  return out;
}

Bytes plain_product(int rows, int fours, int outputs, const Operands& operands) {
  Bytes out;
  out.fill(kUntouched);
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < outputs; ++n) {
      std::int32_t sum = 0;
      std::memcpy(&sum, operands.c.data() + 64 * m + 4 * n, 4);
      for (int k = 0; k < 4 * fours; ++k) {
        sum += 2 * operands.a[static_cast<std::size_t>(32 * m + k)] *
               operands.b[static_cast<std::size_t>(64 * (k / 4) + 4 * n + k % 4)];
      }
      std::memcpy(out.data() + 64 * m + 4 * n, &sum, 4);
    }
  }
  return out;
}

TEST(AmxTiles, emulated_ones_give_the_plain_sums_and_touch_nothing_else) {
  Random random(18);
  for (int rows = 1; rows <= 16; ++rows) {
    for (int fours : {1, 4, 8}) {
      for (int outputs : {1, 7, 16}) {
        const Operands operands = random_operands(random);
        EXPECT_EQ(product<EmulatedTiles>(shapes_of(rows, fours, outputs), operands),
                  plain_product(rows, fours, outputs, operands))
            << rows << " rows, " << 4 * fours << " inputs, " << outputs << " outputs";
      }
    }
  }
}

TEST(AmxTiles, hardware_and_emulation_give_the_same_bytes) {
  if (!supported(Isa::amx_int8)) GTEST_SKIP() << "this processor has no AMX, or its system does not grant it";
  Random random(19);
  for (int rows = 1; rows <= 16; ++rows) {
    for (int fours : {4, 8}) {
      const Operands operands = random_operands(random);
      const cpu::TileShapes shapes = shapes_of(rows, fours, 16);
      EXPECT_EQ(product<EmulatedTiles>(shapes, operands), product<HardwareTiles>(shapes, operands)) << rows << " rows";
    }
  }
}

TEST(AmxTiles, emulation_refuses_what_the_processor_refuses) {
  const Operands operands{};
  cpu::TileShapes wrong = shapes_of(4, 8, 16);
  wrong.rows[6] = 7;  // B must have a row for each four inputs of A
  EXPECT_THROW(product<EmulatedTiles>(wrong, operands), std::logic_error);
  wrong = shapes_of(17, 8, 16);
  EXPECT_THROW(product<EmulatedTiles>(wrong, operands), std::logic_error);
  wrong = shapes_of(4, 8, 16);
  wrong.palette = 2;
  EXPECT_THROW(product<EmulatedTiles>(wrong, operands), std::logic_error);
  EmulatedTiles::state() = {};  // as after tilerelease
  EXPECT_THROW(EmulatedTiles::load<0>(operands.a.data(), 64), std::logic_error);
}

}  // namespace
}  // namespace troupe::test
