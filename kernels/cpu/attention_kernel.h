// Attention of one kv head's queries over a paged sequence, over a vector type V. Included by path_*.cpp only.
//
// The 16 tokens of a page are 16 lanes of a score vector (K is stored dimension-major), the dimensions of V are lanes
// of the result: every chain of docs/numerics.md is one lane. Int8 keys and values are multiplied as whole numbers;
// their scales, 16 lanes a page, are multiplied to the scores and to the weights. Up to V::kQueries query vectors (the
// heads of the group, and the rows of a prompt) share each read of K and V; how they are put together never shows in a
// result.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/path.h"
#include "kernels/cpu/row_kernel.h"

namespace troupe::cpu {

template <class V, KvType kType>
struct AttentionKernel {
  using F = typename V::F;
  static constexpr int kSplit = 256;
  static constexpr int kPage = KvLayout::kPageTokens;
  static constexpr bool kScaled = kType == KvType::i8;
  static constexpr std::int64_t kBytes = kType == KvType::f16 ? 2 : kType == KvType::f32 ? 4 : 1;
  static constexpr int kLineDims = 64 / (kPage * static_cast<int>(kBytes));  // dimensions of K in a cache line

  // Query vectors in order of their position, and what the splits so far have given them.
  struct Group {
    int count = 0;
    const float* q[V::kQueries];
    float* out[V::kQueries];
    std::int64_t visible[V::kQueries];  // tokens
    float m[V::kQueries], l[V::kQueries];
    alignas(64) float o[V::kQueries][kMaxHeadDim];
  };

  // One split of up to kSplit tokens, for queries group.q[from] .. .
  struct Split {
    std::byte* const* pages;
    int visible[V::kQueries];  // of this split's tokens
    float m[V::kQueries], l[V::kQueries];
    alignas(64) float o[V::kQueries][kMaxHeadDim];
    alignas(64) float p[V::kQueries][kSplit];
  };

  static F load_kv(const std::byte* head, std::int64_t element) {
    if constexpr (kType == KvType::f16) return V::load_half(head + 2 * element);
    if constexpr (kType == KvType::i8) return V::load_i8(head + element);
    return V::load(reinterpret_cast<const float*>(head) + element);
  }

  // The 16 scales behind a head's K (or V).
  static const float* scales(const AttendWork& work, const std::byte* head) {
    return reinterpret_cast<const float*>(head + std::int64_t{kPage} * work.head_dim);
  }

  // Scores of N queries with the tokens of P pages of `pages`. A head's part of a page is 2 KB, too short for the
  // hardware prefetcher: the next pages' K and these pages' V are asked for on the way. One chain has a latency of 4
  // and two fit a cycle: 8 or more of them keep the units busy, so few queries take several pages at once.
  template <int N, int P>
  static void score_pages(const AttendWork& work, const float* const* q, int page, int pages, Split& split) {
    F dot[P][N];
    const std::byte *k[P], *v[P], *next[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      k[p] = split.pages[page + p] + work.k_offset;
      v[p] = split.pages[page + p] + work.v_offset;
      next[p] = page + P + p < pages ? split.pages[page + P + p] + work.k_offset : v[p];
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) dot[p][i] = V::zero();
      if constexpr (kScaled) {
        __builtin_prefetch(scales(work, next[p]));
        __builtin_prefetch(scales(work, v[p]));
      }
    }
    for (int d = 0; d < work.head_dim; ++d) {
      F column[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        column[p] = load_kv(k[p], std::int64_t{d} * kPage);
        if (d % kLineDims == 0) {
          __builtin_prefetch(next[p] + std::int64_t{d} * kPage * kBytes);
          __builtin_prefetch(v[p] + std::int64_t{d} * kPage * kBytes);
        }
      }
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) {
        const F one = V::set1(q[i][d]);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) dot[p][i] = V::fma(one, column[p], dot[p][i]);
      }
    }
    const F scale = V::set1(work.scale);
    for (int p = 0; p < P; ++p) {
      for (int i = 0; i < N; ++i) {
        if constexpr (kScaled) dot[p][i] = V::mul(dot[p][i], V::load(scales(work, k[p])));
        V::store(split.p[i] + (page + p) * kPage, V::mul(dot[p][i], scale));
      }
    }
  }

  template <int N>
  static void scores(const AttendWork& work, const float* const* q, Split& split) {
    constexpr int kTogether = V::kChains / N < 4 ? V::kChains / N : 4;
    const int pages = (split.visible[N - 1] + kPage - 1) / kPage;
    int page = 0;
    for (; page + kTogether <= pages; page += kTogether) score_pages<N, kTogether>(work, q, page, pages, split);
    for (; page < pages; ++page) score_pages<N, 1>(work, q, page, pages, split);
  }

  // Scores to weights: maximum, exp, sum in 16 partials. What stands past the visible tokens may be anything.
  static void weights(float* p, int visible, float& m, float& l) {
    const F lowest = V::set1(-std::numeric_limits<float>::infinity());
    F most = lowest;
    for (int t = 0; t < visible; t += kPage) {
      const F score = V::load(p + t);
      most = V::max(visible - t < kPage ? V::first_lanes(score, visible - t, lowest) : score, most);
    }
    m = V::max_of(most);
    F sums = V::zero();
    for (int t = 0; t < visible; t += kPage) {
      F weight = RowKernels<V>::exp(V::sub(V::load(p + t), V::set1(m)));
      // A token that is not visible adds +0 to a sum that is not negative: the same bits as leaving it out.
      if (visible - t < kPage) weight = V::first_lanes(weight, visible - t, V::zero());
      sums = V::add(sums, weight);
      V::store(p + t, weight);
    }
    float lanes[16];
    V::store(lanes, sums);
    for (int w = 8; w >= 1; w /= 2) {
      for (int i = 0; i < w; ++i) lanes[i] += lanes[i + w];
    }
    l = lanes[0];
  }

  // Weights times the scales of their tokens' values: what mix() multiplies the stored numbers by.
  static void scale_weights(const AttendWork& work, Split& split, int n) {
    for (int t = 0; t < split.visible[n]; t += kPage) {
      const std::byte* v = split.pages[t / kPage] + work.v_offset;
      V::store(split.p[n] + t, V::mul(V::load(split.p[n] + t), V::load(scales(work, v))));
    }
  }

  // o[i][16 D dimensions from d] += p[i][t] * v[t], tokens first .. end-1 ascending, of queries i .. i + N - 1.
  template <int N, int D>
  static void mix_dims(const AttendWork& work, Split& split, int i, int first, int end, int d) {
    F o[N][D];
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
      for (int j = 0; j < D; ++j) o[n][j] = V::load(split.o[i + n] + d + 16 * j);
    }
    for (int t = first; t < end; ++t) {
      const std::byte* v = split.pages[t / kPage] + work.v_offset;
      const std::int64_t row = std::int64_t{t % kPage} * work.head_dim + d;
      F value[D];
#pragma GCC unroll 4
      for (int j = 0; j < D; ++j) value[j] = load_kv(v, row + 16 * j);
#pragma GCC unroll 6
      for (int n = 0; n < N; ++n) {
        const F weight = V::set1(split.p[i + n][t]);
#pragma GCC unroll 4
        for (int j = 0; j < D; ++j) o[n][j] = V::fma(weight, value[j], o[n][j]);
      }
    }
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
      for (int j = 0; j < D; ++j) V::store(split.o[i + n] + d + 16 * j, o[n][j]);
    }
  }

  template <int N>
  static void mix(const AttendWork& work, Split& split, int i, int first, int end) {
    int d = 0;
    for (; d + 16 * V::kDims <= work.head_dim; d += 16 * V::kDims) mix_dims<N, V::kDims>(work, split, i, first, end, d);
    for (; d < work.head_dim; d += 16) mix_dims<N, 1>(work, split, i, first, end, d);
  }

  static void combine(int head_dim, Group& group, int i, const Split& next, int n) {
    const float m = group.m[i] < next.m[n] ? next.m[n] : group.m[i];
    float factors[16] = {group.m[i] - m, next.m[n] - m};
    V::store(factors, RowKernels<V>::exp(V::load(factors)));
    const F a = V::set1(factors[0]), b = V::set1(factors[1]);
    group.l[i] = __builtin_fmaf(group.l[i], factors[0], next.l[n] * factors[1]);
    for (int d = 0; d < head_dim; d += 16) {
      V::store(group.o[i] + d, V::fma(V::load(group.o[i] + d), a, V::mul(V::load(next.o[n] + d), b)));
    }
    group.m[i] = m;
  }

  // Split `number` for the queries from `from` on, N of them.
  template <int N>
  static void attend_split(const AttendWork& work, Group& group, int from, int number) {
    Split split;
    split.pages = work.pages + number * (kSplit / kPage);
    for (int n = 0; n < N; ++n) {
      const std::int64_t left = group.visible[from + n] - std::int64_t{number} * kSplit;
      split.visible[n] = left < kSplit ? static_cast<int>(left) : kSplit;
      for (int d = 0; d < work.head_dim; d += 16) V::store(split.o[n] + d, V::zero());
    }
    scores<N>(work, group.q + from, split);
    for (int n = 0; n < N; ++n) {
      weights(split.p[n], split.visible[n], split.m[n], split.l[n]);
      if constexpr (kScaled) scale_weights(work, split, n);
    }
    // First the tokens that all of them see, then what the later rows see beyond.
    mix<N>(work, split, 0, 0, split.visible[0]);
    for (int n = 1; n < N; ++n) {
      if (split.visible[n] > split.visible[0]) mix<1>(work, split, n, split.visible[0], split.visible[n]);
    }
    for (int n = 0; n < N; ++n) {
      if (number > 0) {
        combine(work.head_dim, group, from + n, split, n);
        continue;
      }
      group.m[from + n] = split.m[n];
      group.l[from + n] = split.l[n];
      for (int d = 0; d < work.head_dim; d += 16) V::store(group.o[from + n] + d, V::load(split.o[n] + d));
    }
  }

  template <int N = V::kQueries>
  static void attend_sized(const AttendWork& work, Group& group, int from, int number) {
    if constexpr (N > 1) {
      if (group.count - from != N) return attend_sized<N - 1>(work, group, from, number);
    }
    attend_split<N>(work, group, from, number);
  }

  static void attend_group(const AttendWork& work, Group& group) {
    int from = 0;  // the queries before it have seen all they may
    for (int number = 0; std::int64_t{number} * kSplit < group.visible[group.count - 1]; ++number) {
      while (group.visible[from] <= std::int64_t{number} * kSplit) ++from;
      attend_sized(work, group, from, number);
    }
    for (int i = 0; i < group.count; ++i) {
      const F inverse = V::set1(1.0f / group.l[i]);
      for (int d = 0; d < work.head_dim; d += 16) V::store(group.out[i] + d, V::mul(V::load(group.o[i] + d), inverse));
    }
  }

  static void attend(const AttendWork& work) {
    Group group;
    for (std::int64_t row = 0; row < work.rows; ++row) {
      for (int head = 0; head < work.group; ++head) {
        const std::int64_t at = row * work.row_stride + std::int64_t{head} * work.head_dim;
        group.q[group.count] = work.q + at;
        group.out[group.count] = work.out + at;
        group.visible[group.count] = work.position + row + 1;
        const bool last = row + 1 == work.rows && head + 1 == work.group;
        if (++group.count < V::kQueries && !last) continue;
        attend_group(work, group);
        group.count = 0;
      }
    }
  }
};

template <class V>
void attend_any(const AttendWork& work) {
  if (work.type == KvType::f16) return AttentionKernel<V, KvType::f16>::attend(work);
  if (work.type == KvType::i8) return AttentionKernel<V, KvType::i8>::attend(work);
  AttentionKernel<V, KvType::f32>::attend(work);
}

}  // namespace troupe::cpu
