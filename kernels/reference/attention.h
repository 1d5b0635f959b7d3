// Attention of one row and one query head, and the write of one token's keys and values (docs/numerics.md, section 4).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace troupe::reference {

// One kv head of one layer in a sequence's pages.
struct KvHead {
  std::byte* const* pages;
  const KvLayout& layout;
  int layer;
  int head;

  // k, v: [head_dim] of the token.
  void store(std::int64_t token, const float* k, const float* v) const;
  // The stored numbers, and what they are to be multiplied by.
  float k(std::int64_t token, int dim) const;
  float v(std::int64_t token, int dim) const;
  float k_scale(std::int64_t token) const;
  float v_scale(std::int64_t token) const;
};

// The maximum of some tokens' scores, the sum of their weights exp(score - m), and their weighted values.
struct Partial {
  float m, l;
  std::vector<float> o;  // [head_dim], or more
};

// Working memory, sized once by reserve().
struct AttendScratch {
  Partial all, split;
  std::vector<float> scores;  // of one split

  void reserve(std::int64_t widest_head);
};

// out[head_dim] of query q over tokens 0 .. position.
void attend_row(const KvHead& kv, std::int64_t position, const float* q, float scale, AttendScratch& scratch,
                float* out);

}  // namespace troupe::reference
