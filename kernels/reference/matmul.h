// y = x * w for a few rows, as plain scalar loops (docs/numerics.md, section 4, "Matmul").
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace troupe::reference {

// Working memory of a matmul, sized once by reserve(): the activation rows as int8, and one decoded weight row.
struct MatmulScratch {
  std::vector<std::int16_t> x_q;  // [rows][cols]
  std::vector<float> x_d;         // [rows][cols / 32]
  std::vector<std::int32_t> decoded;
  std::vector<std::int16_t> w_q;  // [cols]
  std::vector<float> w_d, w_m;    // [cols / 16]
  std::vector<float> w;           // [cols], unquantized formats

  void reserve(std::int64_t rows, std::int64_t cols);
};

// y is [rows][w.rows], x is [rows][w.cols]. faulty[map[r]], or faulty[r] without a map, is set where row r holds a
// non-finite value.
struct MatmulArgs {
  float* y;
  const float* x;
  std::int64_t rows;
  const PreparedWeight& w;
  std::span<std::uint8_t> faulty;
  const std::int32_t* map = nullptr;
};
void matmul(const MatmulArgs& args, MatmulScratch& scratch);

}  // namespace troupe::reference
