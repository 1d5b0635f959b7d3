#include "kernels/rope.h"

#include <bit>
#include <cmath>

#include "kernels/check.h"

namespace troupe {

namespace {

double angle_step(const RopeParams& params, int pair) {
  const double theta = std::pow(params.base, -2.0 * pair / params.dim) / params.linear_factor;
  return params.frequency_factors.empty() ? theta : theta / params.frequency_factors[static_cast<std::size_t>(pair)];
}

float cos_at(std::int64_t position, double theta) {
  return static_cast<float>(std::cos(static_cast<double>(position) * theta));
}
float sin_at(std::int64_t position, double theta) {
  return static_cast<float>(std::sin(static_cast<double>(position) * theta));
}

void check(const RopeParams& params) {
  TROUPE_CHECK(params.dim % 2 == 0 && params.base > 0 && params.linear_factor > 0);
  TROUPE_CHECK(params.frequency_factors.empty() || std::ssize(params.frequency_factors) == params.dim / 2);
}

}  // namespace

RopeTable RopeTable::create(const RopeParams& params, std::int64_t positions) {
  check(params);
  const int pairs = params.dim / 2;
  RopeTable table{params.dim, params.pairs, positions, {}, {}};
  table.cos.resize(static_cast<std::size_t>(positions * pairs));
  table.sin.resize(table.cos.size());
  for (int i = 0; i < pairs; ++i) {
    const double theta = angle_step(params, i);
    for (std::int64_t p = 0; p < positions; ++p) {
      const auto at = static_cast<std::size_t>(p * pairs + i);
      table.cos[at] = cos_at(p, theta);
      table.sin[at] = sin_at(p, theta);
    }
  }
  return table;
}

std::uint64_t rope_hash(const RopeParams& params) {
  check(params);
  std::uint64_t hash = 1469598103934665603ull;
  const auto add = [&hash](std::uint32_t word) { hash = (hash ^ word) * 1099511628211ull; };
  add(static_cast<std::uint32_t>(params.dim));
  add(static_cast<std::uint32_t>(params.pairs));
  for (int i = 0; i < params.dim / 2; ++i) {
    const double theta = angle_step(params, i);
    for (std::int64_t p = 0; p < std::int64_t{1} << 20; p = p < 256 ? p + 1 : 2 * p) {
      add(std::bit_cast<std::uint32_t>(cos_at(p, theta)));
      add(std::bit_cast<std::uint32_t>(sin_at(p, theta)));
    }
  }
  return hash;
}

}  // namespace troupe
