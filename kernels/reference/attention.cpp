#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/check.h"
#include "kernels/kv_store.h"
#include "kernels/math.h"
#include "kernels/reference/rows.h"

namespace troupe::reference {
namespace {

constexpr std::int64_t kPage = KvLayout::kPageTokens;
constexpr std::int64_t kSplit = 256;  // tokens, counted from token 0

float score(const KvHead& kv, std::int64_t token, const float* q, float scale) {
  float dot = 0.0f;
  for (int d = 0; d < kv.layout.head_dim; ++d) dot = std::fma(q[d], kv.k(token, d), dot);
  return (dot * kv.k_scale(token)) * scale;
}

// Where the elements of one token's K or V stand in its head's part of the page.
struct Places {
  std::int64_t first, stride;
};

// `d` of values of which one is not finite is a NaN: whoever attends to the token gets one.
void store_row(const KvLayout& layout, std::byte* place, std::int64_t slot, Places at, const float* x) {
  if (layout.type != KvType::i8) {
    for (int d = 0; d < layout.head_dim; ++d) store_kv_element(layout.type, place, at.first + d * at.stride, x[d]);
    return;
  }
  const Int8Scale scale = int8_scale(x, layout.head_dim);
  store_kv_scale(layout, place, slot, scale.finite ? scale.d : std::numeric_limits<float>::quiet_NaN());
  for (int d = 0; d < layout.head_dim; ++d) {
    store_kv_element(layout.type, place, at.first + d * at.stride, scale.q(x[d]));
  }
}

// Tokens first .. end-1, all of one split.
void attend_split(const KvHead& kv, std::int64_t first, std::int64_t end, const float* q, float scale,
                  std::vector<float>& scores, Partial& part) {
  part.m = -std::numeric_limits<float>::infinity();
  for (std::int64_t t = first; t < end; ++t) {
    const float one = score(kv, t, q, scale);
    scores[static_cast<std::size_t>(t - first)] = one;
    part.m = std::max(part.m, one);
  }
  float sums[16] = {};
  std::fill(part.o.begin(), part.o.end(), 0.0f);
  for (std::int64_t t = first; t < end; ++t) {
    const float p = exp_contract(scores[static_cast<std::size_t>(t - first)] - part.m);
    sums[t % 16] += p;
    const float weight = p * kv.v_scale(t);
    for (int d = 0; d < kv.layout.head_dim; ++d) {
      float& o = part.o[static_cast<std::size_t>(d)];
      o = std::fma(weight, kv.v(t, d), o);
    }
  }
  for (int w = 8; w >= 1; w /= 2) {
    for (int i = 0; i < w; ++i) sums[i] += sums[i + w];
  }
  part.l = sums[0];
}

void combine(Partial& all, const Partial& next) {
  const float m = std::max(all.m, next.m);
  const float a = exp_contract(all.m - m), b = exp_contract(next.m - m);
  all.l = std::fma(all.l, a, next.l * b);
  for (std::size_t d = 0; d < all.o.size(); ++d) all.o[d] = std::fma(all.o[d], a, next.o[d] * b);
  all.m = m;
}

}  // namespace

void KvHead::store(std::int64_t token, const float* k_values, const float* v_values) const {
  std::byte* page = pages[token / kPage];
  const std::int64_t slot = token % kPage;
  store_row(layout, page + layout.k_offset(layer, head), slot, {slot, kPage}, k_values);
  store_row(layout, page + layout.v_offset(layer, head), slot, {slot * layout.head_dim, 1}, v_values);
}

float KvHead::k(std::int64_t token, int dim) const {
  const std::byte* page = pages[token / kPage];
  return load_kv_element(layout.type, page + layout.k_offset(layer, head), dim * kPage + token % kPage);
}

float KvHead::v(std::int64_t token, int dim) const {
  const std::byte* page = pages[token / kPage];
  return load_kv_element(layout.type, page + layout.v_offset(layer, head), token % kPage * layout.head_dim + dim);
}

float KvHead::k_scale(std::int64_t token) const {
  return load_kv_scale(layout, pages[token / kPage] + layout.k_offset(layer, head), token % kPage);
}

float KvHead::v_scale(std::int64_t token) const {
  return load_kv_scale(layout, pages[token / kPage] + layout.v_offset(layer, head), token % kPage);
}

void AttendScratch::reserve(std::int64_t widest_head) {
  all.o.resize(static_cast<std::size_t>(widest_head));
  split.o.resize(static_cast<std::size_t>(widest_head));
  scores.resize(kSplit);
}

void attend_row(const KvHead& kv, std::int64_t position, const float* q, float scale, AttendScratch& scratch,
                float* out) {
  TROUPE_CHECK(static_cast<int>(scratch.all.o.size()) >= kv.layout.head_dim);
  const std::int64_t visible = position + 1;
  attend_split(kv, 0, std::min(kSplit, visible), q, scale, scratch.scores, scratch.all);
  for (std::int64_t first = kSplit; first < visible; first += kSplit) {
    attend_split(kv, first, std::min(first + kSplit, visible), q, scale, scratch.scores, scratch.split);
    combine(scratch.all, scratch.split);
  }
  const float inverse = 1.0f / scratch.all.l;
  for (int d = 0; d < kv.layout.head_dim; ++d) out[d] = scratch.all.o[static_cast<std::size_t>(d)] * inverse;
}

}  // namespace troupe::reference
