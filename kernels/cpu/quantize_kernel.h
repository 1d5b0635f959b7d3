// Activations to int8 blocks of 32 (docs/numerics.md, section 3), over a vector type V. Included by path_*.cpp only.
//
// A block's largest magnitude and its two sums cross lanes, which takes a chain of shuffles each, and its scale two
// divisions: 64 cycles a block. So 16 blocks go together, the lanes of a vector being blocks: one tree of shuffles
// finds 16 maxima, and two divisions make 16 scales. A few blocks, less than a tree's price, go one by one. Maxima and
// sums of whole numbers are the same in any order.
#pragma once

#include "kernels/cpu/row_kernel.h"

namespace troupe::cpu {

template <class V>
struct QuantizeKernel {
  using F = typename V::F;
  using I = typename V::I;
  using Rows = RowKernels<V>;
  using Scale = typename Rows::Int8Scale;
  static constexpr int kTogether = 16;
  static constexpr int kFew = 4;  // a tree of 16 costs as much as four blocks alone

  // The blocks of a work, row after row.
  struct Cursor {
    const QuantizeWork& work;
    int row = 0;
    std::int64_t block = 0;
    void advance() {
      if (++block < work.blocks) return;
      block = 0;
      ++row;
    }
    const float* x() const { return work.x + row * work.stride + 32 * block; }
    std::byte* tile() const { return work.tile + block * work.rows * QuantLayout::kBlockBytes; }
  };

  struct Numbers {
    float d;
    std::int32_t sum_low, sum_high;
  };

  static void put(const Cursor& at, I q_low, I q_high, const Numbers& numbers) {
    const int rows = at.work.rows;
    std::byte* tile = at.tile();
    V::store_i8(tile + 32 * at.row, q_low);
    V::store_i8(tile + 32 * at.row + 16, q_high);
    float* floats = reinterpret_cast<float*>(tile + QuantLayout::d_at(rows)) + at.row;
    const std::int32_t sum = numbers.sum_low + numbers.sum_high;
    floats[0] = numbers.d;
    floats[rows] = numbers.d * static_cast<float>(sum);
    const auto start = [&](QuantLayout::Start which, std::int32_t offsets) {
      reinterpret_cast<std::int32_t*>(tile + QuantLayout::start_at(which, rows))[at.row] = kMagicBits - offsets;
    };
    start(QuantLayout::offset_8, 8 * sum);
    start(QuantLayout::offset_16, 16 * sum);
    start(QuantLayout::offset_128, 128 * sum);
    start(QuantLayout::first_half_offset_32, 32 * numbers.sum_low);
    start(QuantLayout::second_half_offset_32, 32 * numbers.sum_high);
  }

  static void quantize_one(const Cursor& at) {
    const F low = V::load(at.x()), high = V::load(at.x() + 16);
    const Scale scale(V::umax(Rows::magnitude(low), Rows::magnitude(high)));
    if (!scale.finite) at.work.finite[at.row] = false;
    const I q_low = scale.q(low), q_high = scale.q(high);
    put(at, q_low, q_high, {scale.d, V::sum_of(q_low), V::sum_of(q_high)});
  }

  // By block: the bits of its largest magnitude, and both divisions of Int8Scale, which count where that is usable.
  struct alignas(64) Scales {
    std::int32_t largest[kTogether];
    float d[kTogether], inverse[kTogether];
    explicit Scales(I bits) {
      const F of = V::bits_as_float(bits);
      V::istore(largest, bits);
      V::store(d, V::div(of, V::set1(127.0f)));
      V::store(inverse, V::div(V::set1(127.0f), of));
    }
    Scale of(int i) const { return {static_cast<std::uint32_t>(largest[i]), d[i], inverse[i]}; }
  };

  template <class Do>
  static void each(Cursor at, int count, Do&& act) {
    for (int i = 0; i < count; ++i, at.advance()) act(i, at);
  }

  static void quantize_together(const Cursor& first, int count) {
    I low[kTogether], high[kTogether];
    for (int i = count; i < kTogether; ++i) low[i] = high[i] = V::izero();
    each(first, count, [&](int i, const Cursor& at) {
      low[i] = V::umax(Rows::magnitude(V::load(at.x())), Rows::magnitude(V::load(at.x() + 16)));
    });
    const Scales scales(V::umax_across(low));
    each(first, count, [&](int i, const Cursor& at) {
      const Scale scale = scales.of(i);
      if (!scale.finite) at.work.finite[at.row] = false;
      low[i] = scale.q(V::load(at.x()));
      high[i] = scale.q(V::load(at.x() + 16));
    });
    std::int32_t sums_low[kTogether], sums_high[kTogether];
    V::istore(sums_low, V::sum_across(low));
    V::istore(sums_high, V::sum_across(high));
    each(first, count, [&](int i, const Cursor& at) {
      put(at, low[i], high[i], {scales.of(i).d, sums_low[i], sums_high[i]});
    });
  }

  static void quantize(const QuantizeWork& work) {
    Cursor at{work};
    std::int64_t left = work.rows * work.blocks;
    for (; left >= kFew; left -= kTogether) {
      quantize_together(at, left < kTogether ? static_cast<int>(left) : kTogether);
      for (int i = 0; i < kTogether && i < left; ++i) at.advance();
    }
    for (; left > 0; --left, at.advance()) quantize_one(at);
  }
};

}  // namespace troupe::cpu
