#include "kernels/reference/matmul.h"

#include <algorithm>
#include <cmath>

#include "kernels/check.h"
#include "kernels/quant/formats.h"
#include "kernels/reference/rows.h"

namespace troupe::reference {
namespace {

void mark(const MatmulArgs& args, std::int64_t row) {
  args.faulty[static_cast<std::size_t>(args.map == nullptr ? row : args.map[row])] = 1;
}

const std::byte* weight_row(const PreparedWeight& w, std::int64_t n) {
  return w.data + n * Tensor{w.data, w.type, w.rows, w.cols}.row_bytes();
}

template <class F>
void decode(const std::byte* row, std::int64_t cols, MatmulScratch& scratch) {
  for (std::int64_t at = 0; at < cols; at += F::kTraits.block, row += F::kTraits.bytes) {
    const std::int64_t term = at / F::kTermInputs;
    F::terms(row, scratch.decoded.data() + at, scratch.w_d.data() + term, scratch.w_m.data() + term);
  }
  for (std::int64_t k = 0; k < cols; ++k) {
    const auto at = static_cast<std::size_t>(k);
    scratch.w_q[at] = static_cast<std::int16_t>(scratch.decoded[at]);
  }
}

// One output of one row: ascending terms, one accumulator.
template <class F>
float dot_row(const MatmulScratch& w, const std::int16_t* x_q, const float* x_d, std::int64_t cols) {
  float acc = 0.0f;
  for (std::int64_t t = 0; t < cols / F::kTermInputs; ++t) {
    const std::int16_t* q = w.w_q.data() + t * F::kTermInputs;
    const std::int16_t* x = x_q + t * F::kTermInputs;
    std::int32_t dot = 0, sum = 0;
    for (int i = 0; i < F::kTermInputs; ++i) dot += q[i] * x[i];
    for (int i = 0; i < F::kTermInputs; ++i) sum += x[i];
    const float dx = x_d[t * F::kTermInputs / kGroup];
    const float p = static_cast<float>(dot) * w.w_d[static_cast<std::size_t>(t)] + 0.0f;
    acc = std::fma(p, dx, acc);
    if constexpr (F::kHasMinimum) {
      acc = std::fma(w.w_m[static_cast<std::size_t>(t)], dx * static_cast<float>(sum), acc);
    }
  }
  return acc;
}

template <class F>
void matmul_quantized(const MatmulArgs& args, MatmulScratch& scratch) {
  const std::int64_t cols = args.w.cols, groups = cols / kGroup;
  for (std::int64_t m = 0; m < args.rows; ++m) {
    std::int16_t* q = scratch.x_q.data() + m * cols;
    if (!quantize_row(args.x + m * cols, cols, q, scratch.x_d.data() + m * groups)) mark(args, m);
  }
  for (std::int64_t n = 0; n < args.w.rows; ++n) {
    decode<F>(weight_row(args.w, n), cols, scratch);
    for (std::int64_t m = 0; m < args.rows; ++m) {
      args.y[m * args.w.rows + n] =
          dot_row<F>(scratch, scratch.x_q.data() + m * cols, scratch.x_d.data() + m * groups, cols);
    }
  }
}

void matmul_plain(const MatmulArgs& args, MatmulScratch& scratch) {
  const std::int64_t cols = args.w.cols;
  for (std::int64_t m = 0; m < args.rows; ++m) {
    if (!all_finite(args.x + m * cols, cols)) mark(args, m);
  }
  for (std::int64_t n = 0; n < args.w.rows; ++n) {
    quant::dequantize(args.w.type, weight_row(args.w, n), cols, scratch.w.data());
    for (std::int64_t m = 0; m < args.rows; ++m) {
      const float* x = args.x + m * cols;
      float acc = 0.0f;
      for (std::int64_t k = 0; k < cols; ++k) acc = std::fma(scratch.w[static_cast<std::size_t>(k)], x[k], acc);
      args.y[m * args.w.rows + n] = acc;
    }
  }
}

}  // namespace

void MatmulScratch::reserve(std::int64_t rows, std::int64_t cols) {
  const auto width = static_cast<std::size_t>(cols);
  x_q.resize(static_cast<std::size_t>(rows) * width);
  x_d.resize(x_q.size() / kGroup);
  decoded.resize(width);
  w_q.resize(width);
  w_d.resize(width / 16);
  w_m.resize(width / 16);
  w.resize(width);
}

void matmul(const MatmulArgs& args, MatmulScratch& scratch) {
  TROUPE_CHECK(args.w.cols <= static_cast<std::int64_t>(scratch.w.size()));
  TROUPE_CHECK(args.rows * args.w.cols <= static_cast<std::int64_t>(scratch.x_q.size()));
  quant::visit_format(args.w.type, [&]<class F>(F) {
    if constexpr (quant::Quantized<F>) {
      matmul_quantized<F>(args, scratch);
    } else {
      matmul_plain(args, scratch);
    }
  });
}

}  // namespace troupe::reference
