// tdpbssd of full tiles: 16 rows by 64 bytes by 16 columns, 16384 multiply-adds. (The kernels' blocks of 32 inputs fill
// half a tile, and the instruction takes as long for half a tile: half of this ceiling is what they could reach.)
#include <cstddef>

#include "apps/kernel_bench/ceiling.h"
#include "kernels/cpu/amx_tiles.h"

namespace troupe::kernel_bench {
namespace {

constexpr int kTileRows = 16, kRowBytes = 64;

cpu::TileShapes full_tiles() {
  cpu::TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) {
    shapes.rows[tile] = kTileRows;
    shapes.row_bytes[tile] = kRowBytes;
  }
  return shapes;
}

double sum_of_first_tile() {
  alignas(64) std::int32_t sums[kTileRows * kRowBytes / 4];
  HardwareTiles::store<0>(sums, kRowBytes);
  double total = 0.0;
  for (std::int32_t sum : sums) total += sum;
  return total;
}

}  // namespace

// Four accumulators (0 to 3) by two operands of each side (4, 5 and 6, 7), as a kernel that reuses both would have. All
// four are the same sum.
double burst_tdpbssd(int rounds) {
  alignas(64) std::byte ones[kRowBytes], zeros[kRowBytes] = {};
  std::memset(ones, 1, sizeof ones);
  HardwareTiles::shape(full_tiles());
  HardwareTiles::load<4>(ones, 0);
  HardwareTiles::load<5>(ones, 0);
  HardwareTiles::load<6>(ones, 0);
  HardwareTiles::load<7>(ones, 0);
  double total = 0.0;
  for (int round = 0; round < rounds; ++round) {
    HardwareTiles::load<0>(zeros, 0);
    HardwareTiles::load<1>(zeros, 0);
    HardwareTiles::load<2>(zeros, 0);
    HardwareTiles::load<3>(zeros, 0);
    for (int step = 0; step < 50; ++step) {
      HardwareTiles::dot<0, 4, 6>();
      HardwareTiles::dot<1, 4, 7>();
      HardwareTiles::dot<2, 5, 6>();
      HardwareTiles::dot<3, 5, 7>();
    }
    total += 4.0 * sum_of_first_tile();
  }
  return total;
}

}  // namespace troupe::kernel_bench
