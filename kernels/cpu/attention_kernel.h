// Attention of one kv head's query group over a paged sequence, over a vector type V. Included by path_*.cpp only.
//
// The 16 tokens of a page are 16 lanes of a score vector (K is stored dimension-major), the dimensions of V are lanes of
// the result: every chain of docs/numerics.md is one lane, and K and V are read once for all heads of the group.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/path.h"
#include "kernels/cpu/row_kernel.h"

namespace troupe::cpu {

template <class V>
struct AttentionKernel {
  using F = typename V::F;
  static constexpr std::int64_t kSplit = 256;
  static constexpr int kPage = KvLayout::kPageTokens;
  static constexpr int kMaxDim = 256;

  static F load_kv(const std::byte* head, KvType type, std::int64_t element) {
    return type == KvType::f16 ? V::load_half(head + 2 * element) : V::load(reinterpret_cast<const float*>(head) + element);
  }

  // What one split contributes for G query heads.
  template <int G>
  struct Partial {
    float m[G], l[G];
    alignas(64) float o[G][kMaxDim];
    alignas(64) float p[G][kSplit];
  };

  template <int G>
  static void scores(const AttendWork& work, const float* q, std::int64_t first, std::int64_t end, Partial<G>& part) {
    const float lowest = -std::numeric_limits<float>::infinity();
    F most[G];
    for (int g = 0; g < G; ++g) most[g] = V::set1(lowest);
    for (std::int64_t t = first; t < end; t += kPage) {
      const std::byte* k = work.pages[t / kPage] + work.k_offset;
      F dot[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) dot[g] = V::zero();
      for (int d = 0; d < work.head_dim; ++d) {
        const F column = load_kv(k, work.type, std::int64_t{d} * kPage);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) dot[g] = V::fma(V::set1(q[g * work.head_dim + d]), column, dot[g]);
      }
      const int visible = end - t < kPage ? static_cast<int>(end - t) : kPage;
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        F score = V::mul(dot[g], V::set1(work.scale));
        if (visible < kPage) score = V::first_lanes(score, visible, V::set1(lowest));
        most[g] = V::max(score, most[g]);
        V::store(part.p[g] + (t - first), score);
      }
    }
    for (int g = 0; g < G; ++g) part.m[g] = V::max_of(most[g]);
  }

  template <int G>
  static void weights(std::int64_t first, std::int64_t end, Partial<G>& part) {
    for (int g = 0; g < G; ++g) {
      F sums = V::zero();
      for (std::int64_t t = first; t < end; t += kPage) {
        float* p = part.p[g] + (t - first);
        F weight = RowKernels<V>::exp(V::sub(V::load(p), V::set1(part.m[g])));
        // A token that is not visible adds +0 to a sum that is not negative: the same bits as leaving it out.
        if (end - t < kPage) weight = V::first_lanes(weight, static_cast<int>(end - t), V::zero());
        sums = V::add(sums, weight);
        V::store(p, weight);
      }
      float lanes[16];
      V::store(lanes, sums);
      for (int w = 8; w >= 1; w /= 2) {
        for (int i = 0; i < w; ++i) lanes[i] += lanes[i + w];
      }
      part.l[g] = lanes[0];
    }
  }

  // N vectors of 16 dimensions from dimension d on.
  template <int G, int N>
  static void values(const AttendWork& work, std::int64_t first, std::int64_t end, int d, Partial<G>& part) {
    F o[G][N];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) o[g][n] = V::zero();
    }
    for (std::int64_t t = first; t < end; ++t) {
      const std::byte* v = work.pages[t / kPage] + work.v_offset;
      const std::int64_t row = t % kPage * work.head_dim + d;
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        const F value = load_kv(v, work.type, row + 16 * n);
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) o[g][n] = V::fma(V::set1(part.p[g][t - first]), value, o[g][n]);
      }
    }
    for (int g = 0; g < G; ++g) {
      for (int n = 0; n < N; ++n) V::store(part.o[g] + d + 16 * n, o[g][n]);
    }
  }

  template <int G>
  static void split(const AttendWork& work, const float* q, std::int64_t first, std::int64_t end, Partial<G>& part) {
    scores<G>(work, q, first, end, part);
    weights<G>(first, end, part);
    int d = 0;
    for (; d + 64 <= work.head_dim; d += 64) values<G, 4>(work, first, end, d, part);
    for (; d < work.head_dim; d += 16) values<G, 1>(work, first, end, d, part);
  }

  template <int G>
  static void combine(int head_dim, Partial<G>& all, const Partial<G>& next) {
    for (int g = 0; g < G; ++g) {
      const float m = all.m[g] < next.m[g] ? next.m[g] : all.m[g];
      float factors[16] = {all.m[g] - m, next.m[g] - m};
      V::store(factors, RowKernels<V>::exp(V::load(factors)));
      const F a = V::set1(factors[0]), b = V::set1(factors[1]);
      all.l[g] = __builtin_fmaf(all.l[g], factors[0], next.l[g] * factors[1]);
      for (int d = 0; d < head_dim; d += 16) {
        V::store(all.o[g] + d, V::fma(V::load(all.o[g] + d), a, V::mul(V::load(next.o[g] + d), b)));
      }
      all.m[g] = m;
    }
  }

  template <int G>
  static void row(const AttendWork& work, const float* q, std::int64_t visible, float* out) {
    Partial<G> all;
    split<G>(work, q, 0, visible < kSplit ? visible : kSplit, all);
    for (std::int64_t first = kSplit; first < visible; first += kSplit) {
      Partial<G> next;
      split<G>(work, q, first, first + kSplit < visible ? first + kSplit : visible, next);
      combine<G>(work.head_dim, all, next);
    }
    for (int g = 0; g < G; ++g) {
      const F inverse = V::set1(1.0f / all.l[g]);
      for (int d = 0; d < work.head_dim; d += 16) {
        V::store(out + g * work.head_dim + d, V::mul(V::load(all.o[g] + d), inverse));
      }
    }
  }

  template <int G>
  static void heads(const AttendWork& work, std::int64_t i, int first_head) {
    const std::int64_t at = i * work.row_stride + std::int64_t{first_head} * work.head_dim;
    row<G>(work, work.q + at, work.position + i + 1, work.out + at);
  }

  static void attend(const AttendWork& work) {
    for (std::int64_t i = 0; i < work.rows; ++i) {
      int head = 0;
      if constexpr (V::kHeads >= 4) {
        for (; head + 4 <= work.group; head += 4) heads<4>(work, i, head);
        if (head + 3 <= work.group) {
          heads<3>(work, i, head);
          head += 3;
        }
        if (head + 2 <= work.group) {
          heads<2>(work, i, head);
          head += 2;
        }
      }
      for (; head < work.group; ++head) heads<1>(work, i, head);
    }
  }
};

}  // namespace troupe::cpu
