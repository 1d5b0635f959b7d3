#include "kernels/cpu/tiles.h"

#include <cstring>

#include "kernels/cpu/tile_words.h"
#include "kernels/quant/formats.h"

namespace troupe::cpu {
namespace {

using namespace quant;

std::byte* at(std::byte* tile, std::int64_t offset) {
  return tile + offset;
}
const std::byte* at(const std::byte* tile, std::int64_t offset) {
  return tile + offset;
}

int get_bits(std::byte place, int shift, int mask) {
  return (u8(place) >> shift) & mask;
}

// Input i (0..31) of row r in a block of nibbles: which byte, and how far its nibble is shifted.
int nibble_byte(int i, int r) {
  return i % 16 / 4 * 64 + 4 * r + i % 4;
}
int nibble_shift(int i) {
  return i < 16 ? 0 : 4;
}

template <int kBits>
int get_level(const std::byte* block, int i, int r) {
  if constexpr (kBits == 8) return u8(block[i / 4 * 64 + 4 * r + i % 4]);
  int q = get_bits(block[nibble_byte(i, r)], nibble_shift(i), 15);
  const int lane_byte = 4 * r + i % 4, j = i % 16 / 4;
  if constexpr (kBits == 5) q |= get_bits(block[256 + lane_byte], j + (i < 16 ? 0 : 4), 1) << 4;
  if constexpr (kBits == 6) q |= get_bits(block[256 + (i < 16 ? 0 : 64) + lane_byte], 2 * j, 3) << 4;
  return q;
}

// The layout of one format: `fill` takes one file block of row r, `read` gives 32 inputs of row r back.
template <bool kMinimum, int kBits, int kOffset>
struct GroupLayout {
  using L = Groups<kMinimum, kBits>;
  static std::size_t bytes(std::int64_t cols) {
    const std::int64_t blocks = cols / 32;
    return static_cast<std::size_t>((blocks + 1) / 2 * L::kGroupBytes - blocks % 2 * L::kBlockBytes);
  }
  static void fill(std::byte* tile, std::int64_t block, int r, const std::byte* file) {
    std::memcpy(at(tile, L::scale_at(block)) + 2 * r, file, 2);
    if constexpr (kMinimum) std::memcpy(at(tile, L::minimum_at(block)) + 2 * r, file + 2, 2);
    put_words<kBits>(at(tile, L::block_at(block)), r, words_of_block<kBits>(file + (kMinimum ? 4 : 2)));
  }
  static void read(const std::byte* tile, std::int64_t block, int r, float* out) {
    const float dw = load_half(at(tile, L::scale_at(block)) + 2 * r);
    for (int i = 0; i < 32; ++i) {
      out[i] = dw * static_cast<float>(get_level<kBits>(at(tile, L::block_at(block)), i, r) - kOffset);
      if constexpr (kMinimum) out[i] += load_half(at(tile, L::minimum_at(block)) + 2 * r);
    }
  }
};

template <class F, int kBits>
struct SuperLayout {
  using L = SuperBlocks<kBits>;
  static std::size_t bytes(std::int64_t cols) { return static_cast<std::size_t>(cols / 256) * L::kBytes; }
  static void fill(std::byte* tile, std::int64_t super, int r, const std::byte* file) {
    int scale[8], minimum[8];
    load_scales_6bit(file + 4, scale, minimum);
    const std::int64_t first = super * 8;
    std::memcpy(at(tile, L::d_at(first)) + 2 * r, file, 2);
    std::memcpy(at(tile, L::dmin_at(first)) + 2 * r, file + 2, 2);
    for (int g = 0; g < 8; ++g) {
      at(tile, L::scale_at(first + g))[r] = static_cast<std::byte>(scale[g]);
      at(tile, L::min_at(first + g))[r] = static_cast<std::byte>(minimum[g]);
      put_words<kBits>(at(tile, L::block_at(first + g)), r,
                       words_of_group<kBits>(file + F::kHighAt, file + F::kNibblesAt, g));
    }
  }
  static void read(const std::byte* tile, std::int64_t block, int r, float* out) {
    const float dw =
        load_half(at(tile, L::d_at(block)) + 2 * r) * static_cast<float>(u8(at(tile, L::scale_at(block))[r]));
    const float mw =
        -(load_half(at(tile, L::dmin_at(block)) + 2 * r) * static_cast<float>(u8(at(tile, L::min_at(block))[r])));
    for (int i = 0; i < 32; ++i) {
      const float product = dw * static_cast<float>(get_level<kBits>(at(tile, L::block_at(block)), i, r));
      out[i] = product + mw;
    }
  }
};

struct SixLayout {
  using L = SixBits;
  static std::size_t bytes(std::int64_t cols) { return static_cast<std::size_t>(cols / 256) * L::kBytes; }
  static void fill(std::byte* tile, std::int64_t super, int r, const std::byte* file) {
    const std::int64_t first = super * 8;
    std::memcpy(at(tile, L::d_at(first)) + 2 * r, file + Q6_K::kDeltaAt, 2);
    for (int g = 0; g < 8; ++g) {
      for (int half = 0; half < 2; ++half) {
        at(tile, L::scale_at(first + g, half))[r] = file[Q6_K::kScalesAt + 2 * g + half];
      }
      put_words<6>(at(tile, L::block_at(first + g)), r, words_of_six(file, file + Q6_K::kHighAt, g));
    }
  }
  static void read(const std::byte* tile, std::int64_t block, int r, float* out) {
    const float d = load_half(at(tile, L::d_at(block)) + 2 * r);
    for (int i = 0; i < 32; ++i) {
      const float dw = d * static_cast<float>(i8(at(tile, L::scale_at(block, i / 16))[r]));
      out[i] = dw * static_cast<float>(get_level<6>(at(tile, L::block_at(block)), i, r) - 32);
    }
  }
};

template <class F>
struct FloatLayout {
  static constexpr std::int64_t kBytes = F::kTraits.bytes;
  static std::size_t bytes(std::int64_t cols) { return static_cast<std::size_t>(cols * kTileRows * kBytes); }
  static void fill(std::byte* tile, std::int64_t input, int r, const std::byte* file) {
    std::memcpy(at(tile, (input * kTileRows + r) * kBytes), file, kBytes);
  }
  static void read(const std::byte* tile, std::int64_t input, int r, float* out) {
    *out = F::value(at(tile, (input * kTileRows + r) * kBytes));
  }
};

template <class F>
struct LayoutOf : FloatLayout<F> {};
template <>
struct LayoutOf<Q4_0> : GroupLayout<false, 4, 8> {};
template <>
struct LayoutOf<Q4_1> : GroupLayout<true, 4, 0> {};
template <>
struct LayoutOf<Q5_0> : GroupLayout<false, 5, 16> {};
template <>
struct LayoutOf<Q5_1> : GroupLayout<true, 5, 0> {};
template <>
struct LayoutOf<Q8_0> : GroupLayout<false, 8, 128> {};
template <>
struct LayoutOf<Q4_K> : SuperLayout<Q4_K, 4> {};
template <>
struct LayoutOf<Q5_K> : SuperLayout<Q5_K, 5> {};
template <>
struct LayoutOf<Q6_K> : SixLayout {};

}  // namespace

std::size_t tile_bytes(DType type, std::int64_t cols) {
  return visit_format(type, [&]<class F>(F) { return LayoutOf<F>::bytes(cols); });
}

std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) {
  const std::size_t bytes = static_cast<std::size_t>((rows + kTileRows - 1) / kTileRows) * tile_bytes(type, cols);
  return (bytes + 63) / 64 * 64;
}

void fill_tiles(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                const std::byte* file_rows) {
  visit_format(weight.type, [&]<class F>(F) {
    const std::int64_t blocks = weight.cols / F::kTraits.block;
    const std::size_t stride = LayoutOf<F>::bytes(weight.cols);
    for (std::int64_t row = first_row; row < first_row + row_count; ++row) {
      std::byte* tile = weight.data + static_cast<std::size_t>(row / kTileRows) * stride;
      for (std::int64_t block = 0; block < blocks; ++block, file_rows += F::kTraits.bytes) {
        LayoutOf<F>::fill(tile, block, static_cast<int>(row % kTileRows), file_rows);
      }
    }
  });
}

void read_row(const PreparedWeight& weight, std::int64_t row, float* out) {
  visit_format(weight.type, [&]<class F>(F) {
    constexpr std::int64_t kStep = Quantized<F> ? 32 : 1;
    const std::byte* tile = weight.data + static_cast<std::size_t>(row / kTileRows) * LayoutOf<F>::bytes(weight.cols);
    for (std::int64_t i = 0; i < weight.cols; i += kStep) {
      LayoutOf<F>::read(tile, i / kStep, static_cast<int>(row % kTileRows), out + i);
    }
  });
}

}  // namespace troupe::cpu
