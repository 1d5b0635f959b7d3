// The matmul kernels, written once over a vector type V (vec_*.h). Included by path_*.cpp only.
//
// A register tile is up to kRows activation rows x kTiles weight tiles. Its sums stand in registers, and beside them
// the dot products of a block of up to kDotRows rows; more rows take turns, in two groups, over a block expanded once.
// The int32 accumulator starts at the bits of the float 1.5 * 2^23 (less the format's offset times the activation sum:
// QuantLayout), so that after the exact dot product its bits, read as a float, are 1.5 * 2^23 + dot: one fma gives
// float(dot) * dw with a single rounding and a positive zero, as the contract words it. (Exact while |dot| < 2^22 and
// dw has at most 22 significant bits: true of every format.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/path.h"
#include "kernels/cpu/tiles.h"

namespace troupe::cpu {

// -- weight formats: scales of 16 rows, and the operands of the dot product
// --------------------------------------------

// The operands of a block: vector j has the inputs 4j to 4j + 3 of 16 rows. Callers are unrolled, so j is a constant.
template <class V, int kBits>
struct BlockOperands {
  using B = typename V::B;
  static B at(const std::byte* block, int j) {
    if constexpr (kBits == 8) return V::bload(block + 64 * j);
    return j < 4 ? low(block, j) : high(block, j - 4);
  }
  static B low(const std::byte* block, int j) {
    const B q = V::band(V::bload(block + 64 * j), V::bset1(15));
    if constexpr (kBits == 5) return V::bor(q, V::band(up(V::bload(block + 256), 4 - j), V::bset1(16)));
    if constexpr (kBits == 6) return V::bor(q, V::band(up(V::bload(block + 256), 4 - 2 * j), V::bset1(0x30)));
    return q;
  }
  static B high(const std::byte* block, int j) {
    const B q = V::band(V::template bshift<-4>(V::bload(block + 64 * j)), V::bset1(15));
    if constexpr (kBits == 5) return V::bor(q, V::band(up(V::bload(block + 256), -j), V::bset1(16)));
    if constexpr (kBits == 6) return V::bor(q, V::band(up(V::bload(block + 320), 4 - 2 * j), V::bset1(0x30)));
    return q;
  }
  static B up(B x, int by) {
    switch (by) {
      case 4:
        return V::template bshift<4>(x);
      case 3:
        return V::template bshift<3>(x);
      case 2:
        return V::template bshift<2>(x);
      case 1:
        return V::template bshift<1>(x);
      case -1:
        return V::template bshift<-1>(x);
      case -2:
        return V::template bshift<-2>(x);
      case -3:
        return V::template bshift<-3>(x);
      default:
        return x;
    }
  }
};

template <class V, bool kMin, int kBitCount, int kStoredOffset>
struct GroupFormat {
  using L = Groups<kMin, kBitCount>;
  static constexpr bool kMinimum = kMin;
  static constexpr int kBits = kBitCount;
  static constexpr int kOffset = kStoredOffset;  // weights are stored as q + this
  static constexpr int kHalves = 1;
  static const std::byte* block(const std::byte* tile, std::int64_t b) { return tile + L::block_at(b); }
  static typename V::F dw(const std::byte* tile, std::int64_t b, int) { return V::load_half(tile + L::scale_at(b)); }
  static typename V::F mw(const std::byte* tile, std::int64_t b) { return V::load_half(tile + L::minimum_at(b)); }
};

template <class V, int kBitCount>
struct SuperFormat {
  using L = SuperBlocks<kBitCount>;
  static constexpr bool kMinimum = true;
  static constexpr int kBits = kBitCount;
  static constexpr int kOffset = 0;
  static constexpr int kHalves = 1;
  static const std::byte* block(const std::byte* tile, std::int64_t b) { return tile + L::block_at(b); }
  static typename V::F dw(const std::byte* tile, std::int64_t b, int) {
    return V::mul(V::load_half(tile + L::d_at(b)), V::load_u8(tile + L::scale_at(b)));
  }
  static typename V::F mw(const std::byte* tile, std::int64_t b) {
    return V::mul(V::mul(V::load_half(tile + L::dmin_at(b)), V::load_u8(tile + L::min_at(b))), V::set1(-1.0f));
  }
};

template <class V>
struct SixFormat {
  using L = SixBits;
  static constexpr bool kMinimum = false;
  static constexpr int kBits = 6;
  static constexpr int kOffset = 32;
  static constexpr int kHalves = 2;  // a scale for each 16 inputs: two terms a block
  static const std::byte* block(const std::byte* tile, std::int64_t b) { return tile + SixBits::block_at(b); }
  static typename V::F dw(const std::byte* tile, std::int64_t b, int half) {
    return V::mul(V::load_half(tile + SixBits::d_at(b)), V::load_i8(tile + SixBits::scale_at(b, half)));
  }
  static typename V::F mw(const std::byte*, std::int64_t) { return V::zero(); }
};

// -- one register tile
// ----------------------------------------------------------------------------------------------------

// The activations of one block, as QuantLayout has them.
template <int M>
struct ActBlock {
  const std::byte* at;
  const std::byte* q(int m) const { return at + 32 * m; }
  float d(int m) const { return floats(QuantLayout::d_at(M))[m]; }
  float d_sum(int m) const { return floats(QuantLayout::d_sum_at(M))[m]; }
  std::int32_t start(QuantLayout::Start which, int m) const {
    return reinterpret_cast<const std::int32_t*>(at + QuantLayout::start_at(which, M))[m];
  }
  const float* floats(std::int64_t offset) const { return reinterpret_cast<const float*>(at + offset); }
};

template <class V, class Format, int M, int T>
struct RegisterTile {
  using F = typename V::F;
  using I = typename V::I;
  using B = typename V::B;
  static constexpr QuantLayout::Start start_of(int half) {
    if (Format::kOffset == 8) return QuantLayout::offset_8;
    if (Format::kOffset == 16) return QuantLayout::offset_16;
    if (Format::kOffset == 128) return QuantLayout::offset_128;
    return half == 0 ? QuantLayout::first_half_offset_32 : QuantLayout::second_half_offset_32;
  }

  static I start(const ActBlock<M>& act, int half, int m) {
    if constexpr (Format::kOffset == 0 || (Format::kBits == 8 && !V::kUnsigned8)) return V::iset1(kMagicBits);
    return V::iset1(act.start(start_of(half), m));
  }

  // Operands as they are needed, or all of a block expanded once, in memory, for rows in two groups.
  struct Direct {
    const std::byte* const (&block)[T];
    B at(int t, int j) const { return BlockOperands<V, Format::kBits>::at(block[t], j); }
  };
  struct Expanded {
    alignas(64) std::byte bytes[T][512];
    explicit Expanded(const Direct& direct) {
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) V::bstore(bytes[t] + 64 * j, direct.at(t, j));
      }
    }
    B at(int t, int j) const {
      return V::bload(bytes[t] + 64 * j);
    }
  };

  template <int kFirst, int kCount>
  static void dots(const auto& operands, const ActBlock<M>& act, int half, I (&dot)[T][kCount]) {
    constexpr int kVectors = 8 / Format::kHalves;
#pragma GCC unroll 6
    for (int m = 0; m < kCount; ++m) {
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) dot[t][m] = start(act, half, kFirst + m);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const int j = Format::kHalves == 2 ? 4 * half + i : i / 2 + i % 2 * 4;  // the two of the same bytes together
      B w[T];
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) w[t] = operands.at(t, j);
#pragma GCC unroll 6
      for (int m = 0; m < kCount; ++m) {
        const B x = V::four(act.q(kFirst + m) + 4 * j);
#pragma GCC unroll 2
        for (int t = 0; t < T; ++t) {
          dot[t][m] = Format::kBits == 8 ? V::dot8(dot[t][m], w[t], x) : V::dot(dot[t][m], w[t], x);
        }
      }
    }
  }

  template <int kFirst, int kCount>
  static void scale(const std::byte* const (&tile)[T], std::int64_t b, int half, const ActBlock<M>& act,
                    const I (&dot)[T][kCount], F (&acc)[T][M]) {
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const F dw = Format::dw(tile[t], b, half);
      const F less = V::mul(dw, V::set1(-kMagic));
#pragma GCC unroll 6
      for (int m = 0; m < kCount; ++m) {
        const F p = V::fma(V::bits_as_float(dot[t][m]), dw, less);
        acc[t][kFirst + m] = V::fma(p, V::set1(act.d(kFirst + m)), acc[t][kFirst + m]);
      }
    }
  }

  static void add_minimum(const std::byte* const (&tile)[T], std::int64_t b, const ActBlock<M>& act, F (&acc)[T][M]) {
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const F mw = Format::mw(tile[t], b);
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) acc[t][m] = V::fma(mw, V::set1(act.d_sum(m)), acc[t][m]);
    }
  }

  // A block of the rows from kFirst on.
  template <int kFirst, int kCount>
  static void add_rows(const auto& operands, const std::byte* const (&tile)[T], std::int64_t b, const ActBlock<M>& act,
                       F (&acc)[T][M]) {
#pragma GCC unroll 2
    for (int half = 0; half < Format::kHalves; ++half) {
      I dot[T][kCount];
      dots<kFirst, kCount>(operands, act, half, dot);
      scale<kFirst, kCount>(tile, b, half, act, dot, acc);
    }
  }

  static void add_block(const std::byte* const (&tile)[T], std::int64_t b, const ActBlock<M>& act, F (&acc)[T][M]) {
    const std::byte* block[T];
    for (int t = 0; t < T; ++t) block[t] = Format::block(tile[t], b);
    const Direct direct{block};
    if constexpr (M <= V::kDotRows) {
      add_rows<0, M>(direct, tile, b, act, acc);
    } else {
      const Expanded expanded(direct);
      add_rows<0, M / 2>(expanded, tile, b, act, acc);
      add_rows<M / 2, M - M / 2>(expanded, tile, b, act, acc);
    }
    if constexpr (Format::kMinimum) add_minimum(tile, b, act, acc);
  }

  static void run(const std::byte* weights, std::size_t stride, const ActTile& act, float* out) {
    F acc[T][M];
    for (int t = 0; t < T; ++t) {
      for (int m = 0; m < M; ++m) acc[t][m] = V::zero();
    }
    const std::byte* tile[T];
    for (int t = 0; t < T; ++t) tile[t] = weights + static_cast<std::size_t>(t) * stride;
    ActBlock<M> block_act{act.quantized};
    int until = act.part + 1;  // blocks to the next prefetch
    for (std::int64_t b = 0; b < act.cols / 32; ++b, block_act.at += M * QuantLayout::kBlockBytes) {
      if (act.ahead != 0 && --until == 0) {
        prefetch(tile, b, act.ahead);
        until = act.parts;
      }
      add_block(tile, b, block_act, acc);
    }
    for (int t = 0; t < T; ++t) {
      for (int m = 0; m < M; ++m) V::store(out + 16 * (m * T + t), acc[t][m]);
    }
  }

  // A strip of tiles is shorter than what the hardware prefetcher needs to get going (11 KB at 576 inputs), so the
  // lines of the next one are asked for while this one is computed.
  static void prefetch(const std::byte* const (&tile)[T], std::int64_t b, std::int64_t ahead) {
    constexpr std::int64_t kBytes = Format::L::kBlockShare;
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t) {
      const std::byte* from = tile[t] + b * kBytes + ahead;
#pragma GCC unroll 9
      for (std::int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(from + i);
    }
  }
};

// F32, F16 and BF16 weights: one fma chain over ascending inputs.
template <class V, DType kType, int M, int T>
struct FloatTile {
  static constexpr std::int64_t kBytes = kType == DType::f32 ? 4 : 2;
  static typename V::F weights(const std::byte* at) {
    if constexpr (kType == DType::f32) return V::load(reinterpret_cast<const float*>(at));
    if constexpr (kType == DType::f16) return V::load_half(at);
    return V::load_bfloat(at);
  }
  static void run(const std::byte* tile, std::size_t stride, const ActTile& act, float* out) {
    typename V::F acc[T][M];
    for (int t = 0; t < T; ++t) {
      for (int m = 0; m < M; ++m) acc[t][m] = V::zero();
    }
    for (std::int64_t k = 0; k < act.cols; ++k) {
#pragma GCC unroll 2
      for (int t = 0; t < T; ++t) {
        const auto w = weights(tile + static_cast<std::size_t>(t) * stride + k * kTileRows * kBytes);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) acc[t][m] = V::fma(w, V::set1(act.floats[m * act.cols + k]), acc[t][m]);
      }
    }
    for (int t = 0; t < T; ++t) {
      for (int m = 0; m < M; ++m) V::store(out + 16 * (m * T + t), acc[t][m]);
    }
  }
};

// -- choosing the instance
// ------------------------------------------------------------------------------------------------

template <class V, template <int, int> class Tile, int T, int M = 1>
void pick_rows(const std::byte* weights, std::size_t stride, const ActTile& act, float* out) {
  if constexpr (M < V::kRows) {
    if (act.rows != M) return pick_rows<V, Tile, T, M + 1>(weights, stride, act, out);
  }
  Tile<M, T>::run(weights, stride, act, out);
}

template <class V, template <int, int> class Tile>
void pick(const std::byte* weights, std::size_t stride, int tiles, const ActTile& act, float* out) {
  if constexpr (V::kTiles == 2) {
    if (tiles == 2) return pick_rows<V, Tile, 2>(weights, stride, act, out);
    return pick_rows<V, Tile, 1>(weights, stride, act, out);
  } else {
    // One tile at a time; the results stand side by side as two would.
    float one[16 * kMaxTileRows];
    for (int t = 0; t < tiles; ++t) {
      pick_rows<V, Tile, 1>(weights + static_cast<std::size_t>(t) * stride, stride, act, one);
      for (int m = 0; m < act.rows; ++m) {
        for (int i = 0; i < 16; ++i) out[16 * (m * tiles + t) + i] = one[16 * m + i];
      }
    }
  }
}

template <class V>
struct Kernels {
  template <class Format>
  struct Of {
    template <int M, int T>
    using Tile = RegisterTile<V, Format, M, T>;
  };
  template <DType kType>
  struct OfFloat {
    template <int M, int T>
    using Tile = FloatTile<V, kType, M, T>;
  };
  template <class Format>
  static constexpr Path::Matmul quantized() {
    return pick<V, Of<Format>::template Tile>;
  }
  template <DType kType>
  static constexpr Path::Matmul floating() {
    return pick<V, OfFloat<kType>::template Tile>;
  }
};

}  // namespace troupe::cpu
