#include "kernels/reference/rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/check.h"

namespace troupe::reference {
namespace {

// An amax below this counts as 0: 127 / amax would leave the range of float32.
constexpr float kSmallestAmax = 0x1p-100f;

bool quantize_group(const float* x, std::int16_t* q, float* d) {
  const Int8Scale scale = int8_scale(x, kGroup);
  *d = scale.d;
  for (int i = 0; i < kGroup; ++i) q[i] = scale.q(x[i]);
  return scale.finite;
}

}  // namespace

std::int16_t Int8Scale::q(float x) const {
  return inverse == 0.0f ? std::int16_t{0} : static_cast<std::int16_t>(std::nearbyint(x * inverse));
}

Int8Scale int8_scale(const float* x, std::int64_t count) {
  const bool finite = all_finite(x, count);
  float amax = 0.0f;
  for (std::int64_t i = 0; i < count; ++i) amax = std::max(amax, std::fabs(x[i]));
  if (!finite || amax < kSmallestAmax) return {finite, 0.0f, 0.0f};
  return {true, amax / 127.0f, 127.0f / amax};
}

bool rms_norm(const float* x, const NormWeight& norm, float* y) {
  const std::size_t cols = norm.weight.size();
  float part[64] = {};
  for (std::size_t i = 0; i < cols; ++i) part[i % 64] = std::fma(x[i], x[i], part[i % 64]);
  for (int w = 32; w >= 1; w /= 2) {
    for (int i = 0; i < w; ++i) part[i] += part[i + w];
  }
  if (!std::isfinite(part[0])) {
    std::fill_n(y, cols, 0.0f);
    return false;
  }
  const float r = 1.0f / std::sqrt(part[0] / static_cast<float>(cols) + norm.epsilon);
  for (std::size_t i = 0; i < cols; ++i) y[i] = (x[i] * r) * norm.weight[i];
  return true;
}

bool quantize_row(const float* x, std::int64_t cols, std::int16_t* q, float* d) {
  bool finite = true;
  for (std::int64_t g = 0; g < cols / kGroup; ++g) {
    finite = quantize_group(x + g * kGroup, q + g * kGroup, d + g) && finite;
  }
  return finite;
}

bool all_finite(const float* x, std::int64_t cols) {
  return std::all_of(x, x + cols, [](float value) { return std::isfinite(value); });
}

void rope(float* head, const RopeTable& table, std::int64_t position) {
  TROUPE_CHECK(position < table.positions);
  const int pairs = table.dim / 2;
  const float* cos = table.cos.data() + position * pairs;
  const float* sin = table.sin.data() + position * pairs;
  const bool neighbours = table.pairs == RopePairs::neighbours;
  for (int i = 0; i < pairs; ++i) {
    float& a = neighbours ? head[2 * i] : head[i];
    float& b = neighbours ? head[2 * i + 1] : head[i + pairs];
    const float old_a = a, old_b = b;
    a = std::fma(old_a, cos[i], -(old_b * sin[i]));
    b = std::fma(old_a, sin[i], old_b * cos[i]);
  }
}

}  // namespace troupe::reference
