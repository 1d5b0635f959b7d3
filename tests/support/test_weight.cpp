#include "tests/support/test_weight.h"

#include <algorithm>
#include <cmath>

#include "kernels/check.h"
#include "kernels/quant/formats.h"

namespace troupe::test {
namespace {

FileMatrix empty_matrix(DType type, std::int64_t rows, std::int64_t cols) {
  FileMatrix matrix{type, rows, cols, {}};
  matrix.bytes.resize(static_cast<std::size_t>(rows * matrix.row_bytes()));
  return matrix;
}

}  // namespace

std::vector<float> FileMatrix::values() const {
  std::vector<float> out(static_cast<std::size_t>(rows * cols));
  quant::dequantize(type, bytes.data(), rows * cols, out.data());
  return out;
}

FileMatrix random_matrix(DType type, std::int64_t rows, std::int64_t cols, Random& random) {
  FileMatrix matrix = empty_matrix(type, rows, cols);
  const std::vector<float> values = random.bells(rows * cols, 1.0f / std::sqrt(static_cast<float>(cols)));
  quant::pack(type, values.data(), rows * cols, matrix.bytes.data());
  return matrix;
}

FileMatrix wild_matrix(DType type, std::int64_t rows, std::int64_t cols, Random& random) {
  FileMatrix matrix = empty_matrix(type, rows, cols);
  const std::size_t block = traits(type).bytes;
  for (std::size_t at = 0; at < matrix.bytes.size(); at += block) {
    do {
      for (std::size_t i = 0; i < block; ++i) matrix.bytes[at + i] = static_cast<std::byte>(random.next() >> 56);
    } while (quant::find_non_finite(type, matrix.bytes.data() + at, 1) == 0);
  }
  return matrix;
}

TestWeight::TestWeight(Backend& backend, const FileMatrix& matrix)
    : memory(backend.allocate(backend.weight_bytes(matrix.type, matrix.rows, matrix.cols))),
      weight{matrix.type, matrix.rows, matrix.cols, memory.data()} {
  constexpr std::int64_t kChunk = 32;  // rows: several calls for all but the smallest
  for (std::int64_t row = 0; row < matrix.rows; row += kChunk) {
    const std::int64_t count = std::min(kChunk, matrix.rows - row);
    const auto bytes = std::span(matrix.bytes)
                           .subspan(static_cast<std::size_t>(row * matrix.row_bytes()),
                                    static_cast<std::size_t>(count * matrix.row_bytes()));
    TROUPE_CHECK(backend.fill(weight, row, count, bytes).ok());
  }
}

}  // namespace troupe::test
