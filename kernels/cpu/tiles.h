// How the CPU backend lays weights out: tiles of 16 output rows, so that the 16 lanes of a vector are 16 outputs.
//
// The unit is a block: 32 inputs of 16 rows. Its nibbles are 4 vectors of 64 bytes; in vector j, bytes 4r .. 4r+3
// belong to row r, low nibbles are inputs 4j .. 4j+3, high nibbles inputs 16+4j .. 16+4j+3. So one vector gives two
// operands of the 4-way int8 dot product with no shuffle. Fifth bits are one more vector: bit j of a byte is bit 4 of
// low nibble j, bit 4+j that of high nibble j. The two upper bits of Q6_K are two vectors: bits 2j, 2j+1 of the first
// belong to low nibble j, of the second to high nibble j. 8-bit weights are 8 vectors, q + 128, vector j inputs 4j.. .
//
//   Q4_0, Q4_1, Q5_0, Q5_1, Q8_0   groups of two blocks: [2 x 16 f16 d]([2 x 16 f16 m]) then block 0, block 1.
//                                  Q4_0 576 bytes, Q4_1 640, Q5_0 704, Q5_1 768, Q8_0 1088: the file's own size.
//                                  The last group of an odd number of blocks ends with its block 0.
//   Q4_K, Q5_K   per 256 inputs: [16 f16 d][16 f16 dmin][8 x 16 u8 scale][8 x 16 u8 min] then 8 blocks
//                (148 and 180 bytes a row, the file has 144 and 176)
//   Q6_K         per 256 inputs: [16 f16 d][16 x 16 i8 scale] then 8 blocks (210 bytes a row, the file's own size)
//   F32, F16, BF16   [input][16 rows]
// Rows past the matrix are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/backend.h"

namespace troupe::cpu {

constexpr int kTileRows = 16;

// Bytes of one tile of `cols` inputs.
std::size_t tile_bytes(DType type, std::int64_t cols);
std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols);

// Lays file rows first_row .. into the tiles. The values are finite (checked by the caller).
void fill_tiles(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                const std::byte* file_rows);
// The exact values of one row.
void read_row(const PreparedWeight& weight, std::int64_t row, float* out);

// Where block parts stand: shared by fill, read and the kernels.
template <bool kMinimum, int kBits>
struct Groups {  // Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
  static constexpr int kMeta = kMinimum ? 128 : 64;
  static constexpr int kBlockBytes = kBits == 8 ? 512 : kBits == 5 ? 320 : 256;
  static constexpr int kGroupBytes = kMeta + 2 * kBlockBytes;
  static constexpr int kBlockShare = kGroupBytes / 2;  // bytes of a tile for each block
  static constexpr std::int64_t scale_at(std::int64_t block) { return block / 2 * kGroupBytes + block % 2 * 32; }
  static constexpr std::int64_t minimum_at(std::int64_t block) { return scale_at(block) + 64; }
  static constexpr std::int64_t block_at(std::int64_t block) {
    return block / 2 * kGroupBytes + kMeta + block % 2 * kBlockBytes;
  }
};

template <int kBits>
struct SuperBlocks {  // Q4_K, Q5_K
  static constexpr int kBlockBytes = kBits == 5 ? 320 : 256;
  static constexpr int kBytes = 64 + 256 + 8 * kBlockBytes;
  static constexpr int kBlockShare = kBytes / 8;
  static constexpr std::int64_t d_at(std::int64_t block) { return block / 8 * kBytes; }
  static constexpr std::int64_t dmin_at(std::int64_t block) { return d_at(block) + 32; }
  static constexpr std::int64_t scale_at(std::int64_t block) { return d_at(block) + 64 + block % 8 * 16; }
  static constexpr std::int64_t min_at(std::int64_t block) { return d_at(block) + 192 + block % 8 * 16; }
  static constexpr std::int64_t block_at(std::int64_t block) { return d_at(block) + 320 + block % 8 * kBlockBytes; }
};

struct SixBits {  // Q6_K
  static constexpr int kBlockBytes = 384;
  static constexpr int kBytes = 32 + 256 + 8 * kBlockBytes;
  static constexpr int kBlockShare = kBytes / 8;
  static constexpr std::int64_t d_at(std::int64_t block) { return block / 8 * kBytes; }
  static constexpr std::int64_t scale_at(std::int64_t block, int half) {
    return d_at(block) + 32 + (2 * (block % 8) + half) * 16;
  }
  static constexpr std::int64_t block_at(std::int64_t block) { return d_at(block) + 288 + block % 8 * kBlockBytes; }
};

}  // namespace troupe::cpu
