// A weight matrix with known file bytes, prepared for one backend.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "tests/support/random.h"

namespace troupe::test {

// The file's bytes of a matrix of `type`.
struct FileMatrix {
  DType type;
  std::int64_t rows, cols;
  std::vector<std::byte> bytes;

  std::int64_t row_bytes() const { return Tensor{bytes.data(), type, rows, cols}.row_bytes(); }
  std::vector<float> values() const;  // [rows][cols], exact
};

// Bell-shaped values of deviation 1 / sqrt(cols), packed.
FileMatrix random_matrix(DType type, std::int64_t rows, std::int64_t cols, Random& random);
// Random bytes: every bit pattern of scales, minima and integers whose scales are finite.
FileMatrix wild_matrix(DType type, std::int64_t rows, std::int64_t cols, Random& random);

// Owns the memory; `weight` is valid as long as this object.
struct TestWeight {
  TestWeight(Backend& backend, const FileMatrix& matrix);
  Buffer memory;
  PreparedWeight weight;
};

}  // namespace troupe::test
