// Row operations over a vector type V: norm, quantization, SwiGLU, RoPE, the KV write, and the reductions of sampling.
// Included by path_*.cpp only. Each is docs/numerics.md's formula with 16 chains side by side.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/path.h"
#include "kernels/math.h"

namespace troupe::cpu {

template <class V>
struct RowKernels {
  using F = typename V::F;
  using I = typename V::I;

  static F exp(F x) {
    using namespace exp_constants;
    const F n = V::rint(V::mul(x, V::set1(kLog2e)));
    F r = V::fnma(n, V::set1(kLn2High), x);
    r = V::fnma(n, V::set1(kLn2Low), r);
    F p = V::set1(kPoly[0]);
#pragma GCC unroll 5
    for (int i = 1; i < 6; ++i) p = V::fma(p, r, V::set1(kPoly[i]));
    p = V::fma(p, V::mul(r, r), V::add(r, V::set1(1.0f)));
    const I whole = V::to_int(n), half = V::template sar<1>(whole), bias = V::iset1(127);
    const F first = V::bits_as_float(V::template shl<23>(V::iadd(half, bias)));
    const F second = V::bits_as_float(V::template shl<23>(V::iadd(V::isub(whole, half), bias)));
    F result = V::mul(V::mul(p, first), second);
    result = V::if_below(x, kLowest, V::zero(), result);
    return V::if_above(x, kHighest, V::set1(std::numeric_limits<float>::infinity()), result);
  }

  // 64 partial sums: element i belongs to partial i mod 64.
  static float fold64(F (&part)[4]) {
    float lanes[16];
    V::store(lanes, V::add(V::add(part[0], part[2]), V::add(part[1], part[3])));
    for (int w = 8; w >= 1; w /= 2) {
      for (int i = 0; i < w; ++i) lanes[i] += lanes[i + w];
    }
    return lanes[0];
  }

  // cols is a multiple of 16 (checked where weights are made ready).
  static float rms_factor(const float* x, std::int64_t cols, float epsilon) {
    F part[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    for (std::int64_t i = 0; i < cols; i += 16) {
      const F v = V::load(x + i);
      part[i / 16 % 4] = V::fma(v, v, part[i / 16 % 4]);
    }
    const float sum = fold64(part);
    if (!std::isfinite(sum)) return std::numeric_limits<float>::quiet_NaN();
    return 1.0f / std::sqrt(sum / static_cast<float>(cols) + epsilon);
  }

  static void rms_scale(const float* x, const float* weight, std::int64_t cols, float factor, float* y) {
    const F r = V::set1(factor);
    for (std::int64_t i = 0; i < cols; i += 16) V::store(y + i, V::mul(V::mul(V::load(x + i), r), V::load(weight + i)));
  }

  // The bits of |x| order like |x|; infinities and NaN are at or above 0x7f800000.
  static I magnitude(F x) {
    return V::iand(V::float_as_bits(x), V::iset1(0x7fffffff));
  }

  // How values become int8, by the bits of their largest magnitude. `usable` is false where every q is 0.
  struct Int8Scale {
    explicit Int8Scale(I largest) : Int8Scale(V::umax_of(largest)) {}
    explicit Int8Scale(std::uint32_t bits)
        : Int8Scale(bits, std::bit_cast<float>(bits) / 127.0f, 127.0f / std::bit_cast<float>(bits)) {}
    // With both quotients, which are anything where that is not usable.
    Int8Scale(std::uint32_t bits, float by_127, float of_127)
        : finite(bits < 0x7f800000u),
          usable(finite && std::bit_cast<float>(bits) >= 0x1p-100f),
          d(usable ? by_127 : 0.0f),
          inverse(of_127) {}
    I q(F x) const { return usable ? V::to_int(V::mul(x, V::set1(inverse))) : V::izero(); }

    bool finite, usable;
    float d, inverse;
  };

  static bool all_finite(const float* x, std::int64_t cols) {
    I largest = V::izero();
    for (std::int64_t i = 0; i < cols; i += 16) largest = V::umax(largest, magnitude(V::load(x + i)));
    return V::umax_of(largest) < 0x7f800000u;
  }

  static void swiglu(const float* gate, const float* up, float* out, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 16) {
      const F g = V::load(gate + i);
      const F silu = V::div(g, V::add(V::set1(1.0f), exp(V::sub(V::set1(-0.0f), g))));
      V::store(out + i, V::mul(silu, V::load(up + i)));
    }
  }

  static void rope(float* head, const float* cos, const float* sin, int pairs, bool neighbours) {
    for (int i = 0; i < pairs; ++i) {
      float& a = neighbours ? head[2 * i] : head[i];
      float& b = neighbours ? head[2 * i + 1] : head[i + pairs];
      const float old_a = a, old_b = b;
      a = __builtin_fmaf(old_a, cos[i], -(old_b * sin[i]));
      b = __builtin_fmaf(old_a, sin[i], old_b * cos[i]);
    }
  }

  // q[head_dim], and the scale: a NaN where a value is not finite.
  static float quantize_head(const float* x, int head_dim, std::byte* q) {
    I largest = V::izero();
    for (int d = 0; d < head_dim; d += 16) largest = V::umax(largest, magnitude(V::load(x + d)));
    const Int8Scale scale(largest);
    for (int d = 0; d < head_dim; d += 16) V::store_i8(q + d, scale.q(V::load(x + d)));
    return scale.finite ? scale.d : std::numeric_limits<float>::quiet_NaN();
  }

  static void store_kv_i8(std::byte* k, std::byte* v, int head_dim, int slot, const float* k_row, const float* v_row) {
    std::byte q[kMaxHeadDim];
    float* scales = reinterpret_cast<float*>(k + head_dim * KvLayout::kPageTokens);
    scales[slot] = quantize_head(k_row, head_dim, q);
    for (int d = 0; d < head_dim; ++d) k[d * KvLayout::kPageTokens + slot] = q[d];
    scales = reinterpret_cast<float*>(v + head_dim * KvLayout::kPageTokens);
    scales[slot] = quantize_head(v_row, head_dim, v + slot * head_dim);
  }

  static void store_kv(std::byte* k, std::byte* v, KvType type, int head_dim, int slot, const float* k_row,
                       const float* v_row) {
    if (type == KvType::i8) return store_kv_i8(k, v, head_dim, slot, k_row, v_row);
    for (int d = 0; d < head_dim; d += 16) {
      if (type == KvType::f16) {
        std::uint16_t half[16];
        V::store_half(reinterpret_cast<std::byte*>(half), V::load(k_row + d));
        std::uint16_t* place = reinterpret_cast<std::uint16_t*>(k) + d * KvLayout::kPageTokens + slot;
        for (int i = 0; i < 16; ++i) place[i * KvLayout::kPageTokens] = half[i];
        V::store_half(v + 2 * (slot * head_dim + d), V::load(v_row + d));
      } else {
        float* place = reinterpret_cast<float*>(k) + d * KvLayout::kPageTokens + slot;
        for (int i = 0; i < 16; ++i) place[i * KvLayout::kPageTokens] = k_row[d + i];
        V::store(reinterpret_cast<float*>(v) + slot * head_dim + d, V::load(v_row + d));
      }
    }
  }

  static float log_sum_exp(const float* logits, std::int64_t vocabulary) {
    const float lowest = -std::numeric_limits<float>::infinity();
    F most = V::set1(lowest);
    std::int64_t i = 0;
    for (; i + 16 <= vocabulary; i += 16) most = V::max(V::load(logits + i), most);
    float largest = V::max_of(most);
    for (std::int64_t k = i; k < vocabulary; ++k) largest = largest < logits[k] ? logits[k] : largest;
    F part[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    for (i = 0; i + 16 <= vocabulary; i += 16) {
      part[i / 16 % 4] = V::add(part[i / 16 % 4], exp(V::sub(V::load(logits + i), V::set1(largest))));
    }
    if (i < vocabulary) {  // lanes past the end add +0 to sums that are not negative: the same bits
      float rest[16];
      for (int k = 0; k < 16; ++k) rest[k] = i + k < vocabulary ? logits[i + k] : lowest;
      part[i / 16 % 4] = V::add(part[i / 16 % 4], exp(V::sub(V::load(rest), V::set1(largest))));
    }
    return largest + log_contract(fold64(part));
  }

  static std::int64_t argmax(const float* logits, std::int64_t vocabulary) {
    F most = V::set1(-std::numeric_limits<float>::infinity());
    std::int64_t i = 0;
    for (; i + 16 <= vocabulary; i += 16)
      most = V::max(V::load(logits + i), most);  // max gives the second where one is NaN
    float largest = V::max_of(most);
    for (; i < vocabulary; ++i) largest = largest < logits[i] ? logits[i] : largest;
    for (i = 0; i < vocabulary; ++i) {
      if (logits[i] == largest) return i;
    }
    return -1;
  }
};

}  // namespace troupe::cpu
