// The quantized matmuls of launches with many rows, on the int8 tile registers of AMX. Included by path_amx.cpp, and by
// a test over registers emulated in plain code.
//
// C[row][output] = A[row][input] x B[input][output]: A is the [rows][32] int8 of QuantLayout as it stands, B a block of
// 16 outputs expanded to signed bytes (the format's offset goes off here, once for 64 weights, and not off each dot).
// As in matmul_kernel.h C starts at the bits of 1.5 * 2^23, so one fma gives float(dot) * dw; measured, 4 % faster than
// a zeroed tile, a conversion and a product.
//
// Up to 32 rows, as one or two row tiles, pass over one or two weight tiles in chunks of four terms (a term: the inputs
// of one scale). A chunk has a phase of tile products, left in a buffer of 8 KB, and a phase of vector code that scales
// them. They take turns on purpose: while a tile instruction is in flight, 512-bit floating point runs at half its
// rate. Both row tiles use a chunk's expanded weights; the next chunk is expanded, with integer code, while the first
// row tile's products drain. (docs/performance.md has what was measured, and chunks of other sizes.)
#pragma once

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/matmul_kernel.h"

namespace troupe::cpu {

constexpr int kAmxRows = 16;  // of a tile register
constexpr int kChunkTerms = 4;
constexpr int kProductBytes = kAmxRows * 64;  // what one tile product leaves

struct StartRow {  // of C
  alignas(64) std::int32_t bits[16] = {};
  constexpr StartRow() {
    for (std::int32_t& one : bits) one = kMagicBits;
  }
};
constexpr StartRow kStartRow;

// Four terms of T weight tiles, ready to multiply and to scale.
template <int T>
struct alignas(64) WeightChunk {
  std::byte q[T][kChunkTerms * 512];  // B tiles, one after the other
  float dw[kChunkTerms][T][16];
  float less[kChunkTerms][T][16];  // what the start of C comes to: -(1.5 * 2^23 * dw)
  float mw[kChunkTerms][T][16];    // formats with a minimum
};

// The rows of a launch's tile, as one or two row tiles of one height; the second begins a row early if they are odd.
// (No template, unlike the rest of the kernels, so shared by all who include this: they all have AVX-512.)
struct RowTiles {
  int rows, height;
  explicit RowTiles(int all) : rows(all), height(all > kAmxRows ? (all + 1) / 2 : all) {}
  // Of the row tile that gives the results from `row` on: its first row, and where its results end.
  int first(int row) const { return row + height <= rows ? row : rows - height; }
  int end(int row) const { return row + height <= rows ? row + height : rows; }
};

// Activations from one block on, as QuantLayout has them.
struct ActBlocks {
  const std::byte* at;
  int rows;
  const std::byte* block(std::int64_t i) const { return at + i * rows * QuantLayout::kBlockBytes; }
  const std::byte* q(int i, int row) const { return block(i) + 32 * row; }
  const float* d(int i, int row) const { return floats(i, QuantLayout::d_at(rows)) + row; }
  const float* d_sum(int i, int row) const { return floats(i, QuantLayout::d_sum_at(rows)) + row; }
  const float* floats(int i, std::int64_t offset) const { return reinterpret_cast<const float*>(block(i) + offset); }
};

template <class V, class Tiles, class Format, int T>
struct AmxTile {
  using F = typename V::F;
  using B = typename V::B;
  using Chunk = WeightChunk<T>;
  static constexpr int kHalves = Format::kHalves;  // terms of a block
  static constexpr int kTermBytes = 512 / kHalves;
  static constexpr int kChunkBlocks = kChunkTerms / kHalves;

  // C in registers 0 to 3, A in 4 and 5, B in 6 and 7.
  static TileShapes shapes(int rows) {
    TileShapes shapes;
    for (int i = 0; i < 8; ++i) {
      shapes.rows[i] = static_cast<std::uint8_t>(i < 6 ? rows : kTermBytes / 64);
      shapes.row_bytes[i] = static_cast<std::uint16_t>(i == 4 || i == 5 ? 32 / kHalves : 64);
    }
    return shapes;
  }

  // -- expanding: row k of B is inputs 4k to 4k + 3 --

  static B level(B q) {
    if constexpr (Format::kOffset > 0) return V::bsub(q, V::bset1(Format::kOffset));
    return q;
  }

  static void expand_levels(const std::byte* block, std::byte* q) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      V::bstore(q + 64 * j, level(BlockOperands<V, Format::kBits>::at(block, j)));
    }
  }

  static void expand_block(const std::byte* tile, std::int64_t b, int t, int i, Chunk& chunk) {
    expand_levels(Format::block(tile, b), chunk.q[t] + 512 * i);
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const F dw = Format::dw(tile, b, half);
      V::store(chunk.dw[kHalves * i + half][t], dw);
      V::store(chunk.less[kHalves * i + half][t], V::mul(dw, V::set1(-kMagic)));
    }
    if constexpr (Format::kMinimum) V::store(chunk.mw[i][t], Format::mw(tile, b));
  }

  static void expand(const std::byte* const (&tile)[T], std::int64_t first, int blocks, const ActTile& act,
                     Chunk& chunk) {
    for (int i = 0; i < blocks; ++i) {
      const std::int64_t b = first + i;
      if (act.ahead != 0 && b % act.parts == act.part) RegisterTile<V, Format, 1, T>::prefetch(tile, b, act.ahead);
      for (int t = 0; t < T; ++t) expand_block(tile[t], b, t, i, chunk);
    }
  }

  // -- multiplying: products[term][t] = [16 rows][16 outputs] of 1.5 * 2^23 + dot --

  // One product, in the C register kSlot. What stood there, the product four before, is stored first: it is finished
  // by then, and the store waits for nothing.
  template <int kSlot>
  static void product(const Chunk& chunk, int first_term, int terms, const ActBlocks& act, int row,
                      std::byte* products) {
    constexpr int t = kSlot % T, kA = 4 + kSlot / T % 2, kB = 6 + kSlot % 2;
    const int term = first_term + kSlot / T, index = term * T + t;
    if (term >= terms) return;
    if (index >= 4) Tiles::template store<kSlot>(products + (index - 4) * kProductBytes, 64);
    Tiles::template load<kSlot>(kStartRow.bits, 0);
    if constexpr (t == 0) Tiles::template load<kA>(act.q(term / kHalves, row) + 16 * (term % kHalves), 32);
    Tiles::template load<kB>(chunk.q[t] + term * kTermBytes, 64);
    Tiles::template dot<kSlot, kA, kB>();
  }

  template <int kSlot>
  static void drain(int count, std::byte* products) {
    if (kSlot >= count) return;
    Tiles::template store<kSlot>(products + (kSlot + (count - 1 - kSlot) / 4 * 4) * kProductBytes, 64);
  }

  // The row tile that begins at `row`.
  static void multiply(const Chunk& chunk, int terms, const ActBlocks& act, int row, std::byte* products) {
    for (int term = 0; term < terms; term += 4 / T) {
      product<0>(chunk, term, terms, act, row, products);
      product<1>(chunk, term, terms, act, row, products);
      product<2>(chunk, term, terms, act, row, products);
      product<3>(chunk, term, terms, act, row, products);
    }
    drain<0>(terms * T, products);
    drain<1>(terms * T, products);
    drain<2>(terms * T, products);
    drain<3>(terms * T, products);
  }

  // -- scaling: the contract's steps, terms in ascending order --

  // M rows from `row` on; `products` and `out` begin at the first of them.
  template <int M>
  static void scale(const Chunk& chunk, int terms, const std::byte* products, const ActBlocks& act, int row,
                    float* out) {
    F acc[M][T];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) acc[m][t] = V::load(out + 16 * (m * T + t));
    }
    for (int term = 0; term < terms; ++term, products += T * kProductBytes) {
      const float *d = act.d(term / kHalves, row), *d_sum = act.d_sum(term / kHalves, row);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
        for (int t = 0; t < T; ++t) {
          const F c = V::load(reinterpret_cast<const float*>(products + t * kProductBytes + 64 * m));
          const F p = V::fma(c, V::load(chunk.dw[term][t]), V::load(chunk.less[term][t]));
          acc[m][t] = V::fma(p, V::set1(d[m]), acc[m][t]);
          if constexpr (Format::kMinimum) acc[m][t] = V::fma(V::load(chunk.mw[term][t]), V::set1(d_sum[m]), acc[m][t]);
        }
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) V::store(out + 16 * (m * T + t), acc[m][t]);
    }
  }

  template <int M = 1>
  static void scale_few(int count, const Chunk& chunk, int terms, const std::byte* products, const ActBlocks& act,
                        int row, float* out) {
    if constexpr (M < 8) {
      if (count != M) return scale_few<M + 1>(count, chunk, terms, products, act, row, out);
    }
    scale<M>(chunk, terms, products, act, row, out);
  }

  // Up to 16 rows, at most 8 at once: with two weight tiles those are 16 sums and 6 other registers.
  static void scale_rows(int count, const Chunk& chunk, int terms, const std::byte* products, const ActBlocks& act,
                         int row, float* out) {
    const int few = count > 8 ? count / 2 : count;
    scale_few(few, chunk, terms, products, act, row, out);
    if (few == count) return;
    scale_few(count - few, chunk, terms, products + 64 * few, act, row + few, out + 16 * T * few);
  }

  // -- all of it --

  static void run(const std::byte* weights, std::size_t stride, const ActTile& act, float* out) {
    const std::byte* tile[T];
    for (int t = 0; t < T; ++t) tile[t] = weights + static_cast<std::size_t>(t) * stride;
    const RowTiles rows(act.rows);
    const std::int64_t blocks = act.cols / 32;
    const auto size = [&](std::int64_t from) {
      return static_cast<int>(blocks - from < kChunkBlocks ? blocks - from : kChunkBlocks);
    };
    Chunk chunks[2];
    for (int i = 0; i < act.rows * T; ++i) V::store(out + 16 * i, V::zero());
    Tiles::shape(shapes(rows.height));
    expand(tile, 0, size(0), act, chunks[0]);
    for (std::int64_t b = 0; b < blocks; b += kChunkBlocks) {
      const std::int64_t next = b + kChunkBlocks;
      const auto expand_next = [&] {
        if (next < blocks) expand(tile, next, size(next), act, chunks[next / kChunkBlocks % 2]);
      };
      const ActBlocks from{ActBlocks{act.quantized, act.rows}.block(b), act.rows};
      add_chunk(chunks[b / kChunkBlocks % 2], kHalves * size(b), from, rows, expand_next, out);
    }
  }

  template <class Meanwhile>
  static void add_chunk(const Chunk& chunk, int terms, const ActBlocks& act, const RowTiles& rows,
                        Meanwhile&& meanwhile, float* out) {
    alignas(64) std::byte products[kChunkTerms * T * kProductBytes];
    for (int row = 0; row < rows.rows; row = rows.end(row)) {
      const int first = rows.first(row);
      multiply(chunk, terms, act, first, products);
      if (row == 0) meanwhile();
      scale_rows(rows.end(row) - row, chunk, terms, products + 64 * (row - first), act, row, out + 16 * T * row);
    }
  }
};

// The wide matmuls of a path: quantized formats as above; floats, which no tile register holds, by the narrow kernels.
template <class V, class Tiles>
struct WideMatmuls {
  template <class Format>
  static void quantized(const std::byte* weights, std::size_t stride, int tiles, const ActTile& act, float* out) {
    if (tiles == 2) return AmxTile<V, Tiles, Format, 2>::run(weights, stride, act, out);
    AmxTile<V, Tiles, Format, 1>::run(weights, stride, act, out);
  }

  template <DType kType>
  static void floating(const std::byte* weights, std::size_t stride, int tiles, const ActTile& act, float* out) {
    ActTile part = act;
    for (int row = 0; row < act.rows; row += part.rows) {
      part.rows = act.rows - row < V::kRows ? act.rows - row : V::kRows;
      part.floats = act.floats + row * act.cols;
      avx512_vnni_path().matmul[static_cast<int>(kType)](weights, stride, tiles, part, out + 16 * tiles * row);
    }
  }
};

// The avx512-vnni path with these.
//
// When they pay, measured with weights from memory and two threads (GMAC/s, AMX against VNNI): at 9 rows Q4_0 392
// against 315, Q4_1 354 against 293, Q5_0 381 against 271, Q4_K 392 against 336; at 8, which are one register tile of
// VNNI, they are even. Q8_0 300 against 269 at 10. Q6_K has two terms a block, so twice the products: 314 against 288
// at 12. In a whole model of 2048 a side that is 1.17 times the tokens/s at 10 sessions. In one of 576 a side it is
// 0.90 at 8, 0.95 at 12, 0.98 at 16 and 1.04 at 32: its phases are short, and a slow beginning of each may be why. (The
// machine: docs/performance.md.)
template <class V, class Tiles>
Path make_amx_path(const char* name) {
  using W = WideMatmuls<V, Tiles>;
  Path path = avx512_vnni_path();
  path.name = name;
  path.wide = {2 * kAmxRows,
               {0, 0, 0, 9, 9, 9, 9, 10, 9, 9, 12},
               3,  // small_times
               {W::template floating<DType::f32>, W::template floating<DType::f16>, W::template floating<DType::bf16>,
                W::template quantized<GroupFormat<V, false, 4, 8>>, W::template quantized<GroupFormat<V, true, 4, 0>>,
                W::template quantized<GroupFormat<V, false, 5, 16>>, W::template quantized<GroupFormat<V, true, 5, 0>>,
                W::template quantized<GroupFormat<V, false, 8, 128>>, W::template quantized<SuperFormat<V, 4>>,
                W::template quantized<SuperFormat<V, 5>>, W::template quantized<SixFormat<V>>}};
  return path;
}

}  // namespace troupe::cpu
