// The contract's operations on one row, as plain scalar loops (docs/numerics.md, section 4).
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace troupe::reference {

constexpr int kGroup = 32;  // inputs that share one activation scale

// How some values become int8. `inverse` is 0 where every q is 0: where all are tiny, or one is not finite.
struct Int8Scale {
  bool finite;
  float d, inverse;
  std::int16_t q(float x) const;
};
Int8Scale int8_scale(const float* x, std::int64_t count);

// y[n] of x[n]. False when the sum of squares is not finite; y is then all zero.
bool rms_norm(const float* x, const NormWeight& norm, float* y);
// q[cols] and d[cols / 32]. False when a value is not finite; its group is then all zero.
bool quantize_row(const float* x, std::int64_t cols, std::int16_t* q, float* d);
bool all_finite(const float* x, std::int64_t cols);
// Rotates one head in place.
void rope(float* head, const RopeTable& table, std::int64_t position);

}  // namespace troupe::reference
