// Path: the functions of one instruction set, and what they take. One table a set, chosen once by CPUID.
//
// All sets give the same bits (docs/numerics.md): lanes are outputs, so no sum crosses lanes, and every chain is in the
// contract's order. The files path_*.cpp compile the same templates (*_kernel.h) with their own -m flags; everything in
// those headers depends on a vector type of an anonymous namespace, so no two sets share a function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_layout.h"
#include "kernels/tensor.h"

namespace troupe::cpu {

constexpr int kMaxHeadDim = 256;  // elements
constexpr int kMaxTileRows = 32;  // activation rows of one tile, at most: 8 of a register tile, 32 of a wide one

inline constexpr float kMagic = 12582912.0f;            // 1.5 * 2^23
inline constexpr std::int32_t kMagicBits = 0x4B400000;  // its bits

// Quantized activations of one row tile of `rows` rows. Per block of 32 inputs, kBlockBytes * rows bytes:
//   [rows][32] int8 q | [rows] f32 d | [rows] f32 d * float(sum) | [rows] i32 each of Start's five
// What a dot product with weights stored as q + offset begins with is kMagicBits - offset * sum (matmul_kernel.h says
// why). It is made here, once for all weights: it was two of some fifteen vector operations of a block's row.
struct QuantLayout {
  enum Start { offset_8, offset_16, offset_128, first_half_offset_32, second_half_offset_32, kStarts };
  static constexpr std::int64_t kBlockBytes = 32 + (2 + kStarts) * 4;
  static constexpr std::int64_t bytes(std::int64_t rows, std::int64_t cols) { return cols / 32 * rows * kBlockBytes; }
  static constexpr std::int64_t d_at(std::int64_t rows) { return 32 * rows; }
  static constexpr std::int64_t d_sum_at(std::int64_t rows) { return 36 * rows; }
  static constexpr std::int64_t start_at(Start start, std::int64_t rows) { return (40 + 4 * start) * rows; }
};

// Blocks of 32 activations of all rows of a tile.
struct QuantizeWork {
  const float* x = nullptr;  // of the first row; the next row's are `stride` floats behind
  std::int64_t stride = 0;
  std::int64_t blocks = 0;    // of each row
  std::byte* tile = nullptr;  // QuantLayout, from the first of the blocks on
  int rows = 0;
  bool* finite = nullptr;  // by row: becomes false where a block, then all zero, is not finite
};

// One tile of activations, in whichever form the weights want.
struct ActTile {
  int rows = 0;
  const std::byte* quantized = nullptr;  // QuantLayout
  const float* floats = nullptr;         // [rows][cols]
  std::int64_t cols = 0;
  // What the kernel asks memory for meanwhile: the weights `ahead` bytes further on, of the blocks b with
  // b % parts == part, so that the row tiles of a batch share the asking. 0: nothing.
  std::int64_t ahead = 0;
  int parts = 1;
  int part = 0;
};

struct AttendWork {
  const float* q = nullptr;  // the first query head of the group, of the first row; rotated
  float* out = nullptr;
  std::int64_t row_stride = 0;  // floats from one row to the next, of q and out
  int group = 0;                // query heads that share the kv head; they are head_dim apart
  std::byte* const* pages = nullptr;
  std::size_t k_offset = 0;  // of this layer and kv head in a page
  std::size_t v_offset = 0;
  KvType type = KvType::f16;
  int head_dim = 0;
  float scale = 0.0f;
  std::int64_t position = 0;  // of the first row
  std::int64_t rows = 0;
};

struct Path {
  const char* name;
  int tile_rows;  // rows of a register tile
  // out[rows][16 * tiles] = activations x one or two adjacent weight tiles, tile_stride bytes apart.
  using Matmul = void (*)(const std::byte* weights, std::size_t tile_stride, int tiles, const ActTile& act, float* out);
  Matmul matmul[11];  // by DType
  // What a row is multiplied by to have a mean square of 1; NaN when the row is not finite.
  float (*rms_factor)(const float* x, std::int64_t cols, float epsilon);
  // y[i] = (x[i] * factor) * weight[i]; cols is a multiple of 16.
  void (*rms_scale)(const float* x, const float* weight, std::int64_t cols, float factor, float* y);
  void (*quantize)(const QuantizeWork& work);
  bool (*all_finite)(const float* x, std::int64_t cols);
  // out[i] = silu(gate[i]) * up[i]; count is a multiple of 16.
  void (*swiglu)(const float* gate, const float* up, float* out, std::int64_t count);
  void (*rope)(float* head, const float* cos, const float* sin, int pairs, bool neighbours);
  // One kv head of one token into its slot.
  void (*store_kv)(std::byte* k, std::byte* v, KvType type, int head_dim, int slot, const float* k_row,
                   const float* v_row);
  void (*attend)(const AttendWork& work);
  float (*log_sum_exp)(const float* logits, std::int64_t vocabulary);
  // The first index of the largest logit, NaN left out; -1 if all are NaN.
  std::int64_t (*argmax)(const float* logits, std::int64_t vocabulary);
  // Launches of many rows: tiles of more rows, with matmuls of their own that give the same bits. A phase takes them
  // from as many rows on as each of its weights asks for; 0: the format does not ask. Without any asking: none.
  struct Wide {
    int tile_rows;
    std::int64_t from_rows[11];
    std::int64_t small_times;  // so many times as many for a phase with less than kSmall inputs, or outputs in all
    Matmul matmul[11];
  };
  static constexpr std::int64_t kSmall = 1024;
  Wide wide{};
};

const Path& avx2_path();
const Path& avx_vnni_path();
const Path& avx512_path();
const Path& avx512_vnni_path();
const Path& amx_path();

}  // namespace troupe::cpu
