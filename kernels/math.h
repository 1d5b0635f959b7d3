// The contract's own exp and log (docs/numerics.md, "exp and log"): nothing here calls the C library at run time, so
// every machine and every vector path gives the same bits. Maximum error over all floats, against double: exp 1.26 ulp,
// log 0.83 ulp. Vector code takes the constants from here and repeats the operations in the same order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace troupe {

// Of docs/numerics.md. Two programs give the same bits only if theirs are equal: part of a model's fingerprint.
inline constexpr std::uint64_t kNumericsVersion = 1;

// Always inline: these are compiled under several instruction sets, and no set may share another's copy.
#define TROUPE_ALWAYS_INLINE [[gnu::always_inline]] inline

// exp(x) = 2^n * exp(r), n = rint(x * log2 e), |r| <= ln 2 / 2; r by a two-part ln 2, exp(r) by a polynomial in r.
namespace exp_constants {
inline constexpr float kLowest = -87.33654f;  // below: 0
inline constexpr float kHighest = 88.72283f;  // above: +infinity
inline constexpr float kLog2e = 1.44269504f;
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;
// exp(r) = 1 + r + r^2 * (((((c0 r + c1) r + c2) r + c3) r + c4) r + c5)
inline constexpr float kPoly[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                   4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
}  // namespace exp_constants

TROUPE_ALWAYS_INLINE float exp_contract(float x) {
  using namespace exp_constants;
  if (x < kLowest) return 0.0f;
  if (x > kHighest) return std::numeric_limits<float>::infinity();
  if (x != x) return x;
  const float n = std::nearbyint(x * kLog2e);
  float r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  float p = kPoly[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, r, kPoly[i]);
  p = std::fma(p, r * r, r + 1.0f);
  // 2^n in two exact factors: n = 128 has no float of its own.
  const int whole = static_cast<int>(n), half = whole >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((whole - half + 127) << 23);
  return (p * first) * second;
}

// log(x) for x >= 2^-126: x = 2^e * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); a polynomial in f. Infinity and NaN stay.
TROUPE_ALWAYS_INLINE float log_contract(float x) {
  if (!(x < std::numeric_limits<float>::infinity())) return x;
  constexpr float kPoly[9] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                              -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                              2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  int e = static_cast<int>(bits >> 23) - 126;  // x = 2^e * m, m in [1/2, 1)
  float m = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f000000u);
  if (m < 0.707106781f) {
    m += m;
    --e;
  }
  const float f = m - 1.0f, z = f * f, scale = static_cast<float>(e);
  float p = kPoly[0];
  for (int i = 1; i < 9; ++i) p = std::fma(p, f, kPoly[i]);
  float y = (f * z) * p;
  y = std::fma(scale, exp_constants::kLn2Low, y);
  y = std::fma(-0.5f, z, y);
  return std::fma(scale, exp_constants::kLn2High, f + y);
}

TROUPE_ALWAYS_INLINE float silu_contract(float g) {
  return g / (1.0f + exp_contract(-g));
}

#undef TROUPE_ALWAYS_INLINE

}  // namespace troupe
