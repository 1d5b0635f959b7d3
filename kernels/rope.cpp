#include "kernels/rope.h"

#include <bit>
#include <cmath>

#include "kernels/check.h"

namespace troupe {

RopeTable RopeTable::create(const RopeParams& params, std::int64_t positions) {
  TROUPE_CHECK(params.dim % 2 == 0 && params.base > 0 && params.linear_factor > 0);
  const int pairs = params.dim / 2;
  TROUPE_CHECK(params.frequency_factors.empty() || static_cast<int>(params.frequency_factors.size()) == pairs);
  RopeTable table{params.dim, params.pairs, positions, {}, {}};
  table.cos.resize(static_cast<std::size_t>(positions * pairs));
  table.sin.resize(table.cos.size());
  for (int i = 0; i < pairs; ++i) {
    double theta = std::pow(params.base, -2.0 * i / params.dim) / params.linear_factor;
    if (!params.frequency_factors.empty()) theta /= params.frequency_factors[static_cast<std::size_t>(i)];
    for (std::int64_t p = 0; p < positions; ++p) {
      const auto at = static_cast<std::size_t>(p * pairs + i);
      table.cos[at] = static_cast<float>(std::cos(static_cast<double>(p) * theta));
      table.sin[at] = static_cast<float>(std::sin(static_cast<double>(p) * theta));
    }
  }
  return table;
}

std::uint64_t RopeTable::hash() const {
  std::uint64_t hash = 1469598103934665603ull;
  auto add = [&hash](std::uint32_t word) { hash = (hash ^ word) * 1099511628211ull; };
  add(static_cast<std::uint32_t>(dim));
  add(static_cast<std::uint32_t>(pairs));
  for (float value : cos) add(std::bit_cast<std::uint32_t>(value));
  for (float value : sin) add(std::bit_cast<std::uint32_t>(value));
  return hash;
}

}  // namespace troupe
