#include "apps/kernel_bench/matmul_trial.h"

#include <algorithm>
#include <unistd.h>

#include "kernels/check.h"
#include "kernels/quant/formats.h"
#include "kernels/random.h"

namespace troupe::kernel_bench {
namespace {

constexpr std::int64_t kStrip = 32;  // outputs: two weight tiles, which the kernels compute at once

constexpr TrialShape kMemoryShape{8192, 2048, 1};
// Long enough for the chain over inputs to be all that counts and for no path to think the matrix small (Path::kSmall),
// short enough that quantizing a row is little beside multiplying it with so few outputs as fit.
constexpr std::int64_t kHotInputs = 1024;

std::int64_t row_bytes(DType type, std::int64_t inputs) {
  return Tensor{nullptr, type, 1, inputs}.row_bytes();
}

// Half of the second-level cache: the other half is for activations and results.
std::int64_t hot_bytes() {
  const long cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::clamp<std::int64_t>(cache / 2, 128 << 10, 1 << 20);
}

std::vector<float> some_values(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = uniform(1, static_cast<std::uint32_t>(i), RandomPurpose::draw) - 0.5f;
  }
  return values;
}

}  // namespace

TrialShape hot_shape(DType type) {
  const std::int64_t strips = hot_bytes() / (kStrip * row_bytes(type, kHotInputs));
  return {std::max<std::int64_t>(strips, 1) * kStrip, kHotInputs, 1};
}

TrialShape memory_shape(DType type, std::size_t bytes) {
  TrialShape shape = kMemoryShape;
  const auto matrix = static_cast<std::size_t>(shape.outputs * row_bytes(type, shape.inputs));
  shape.matrices = static_cast<int>(bytes / matrix) + 1;
  return shape;
}

std::unique_ptr<Backend> trial_backend(Isa isa, int threads, std::int64_t most_rows) {
  auto backend = make_cpu_backend(isa, threads);
  backend->reserve({.rows = most_rows,
                    .widest = std::max(kMemoryShape.inputs, kHotInputs),
                    .heads = 1,
                    .head_dim = 64,
                    .vocabulary = kMemoryShape.outputs});
  return backend;
}

MatmulTrial::MatmulTrial(Backend& backend, DType type, TrialShape shape, std::int64_t most_rows)
    : backend_(backend),
      type_(type),
      shape_(shape),
      matrix_bytes_(backend.weight_bytes(type, shape.outputs, shape.inputs)),
      ring_(backend.allocate(matrix_bytes_ * static_cast<std::size_t>(shape.matrices))),
      inputs_(backend.allocate(static_cast<std::size_t>(most_rows * shape.inputs) * sizeof(float))),
      outputs_(backend.allocate(static_cast<std::size_t>(most_rows * shape.outputs) * sizeof(float))),
      tokens_(static_cast<std::size_t>(most_rows)),
      faulty_(static_cast<std::size_t>(most_rows)) {
  const std::vector<float> values = some_values(most_rows * shape.inputs);
  std::ranges::copy(values, reinterpret_cast<float*>(inputs_.data()));
  fill_ring(backend);
}

PreparedWeight MatmulTrial::matrix(std::size_t index) const {
  return {type_, shape_.outputs, shape_.inputs, ring_.data() + index * matrix_bytes_};
}

// The same few rows again and again: nothing in a kernel depends on the values.
void MatmulTrial::fill_ring(Backend& backend) {
  const std::vector<float> values = some_values(kStrip * shape_.inputs);
  std::vector<std::byte> rows(static_cast<std::size_t>(kStrip * row_bytes(type_, shape_.inputs)));
  quant::pack(type_, values.data(), kStrip * shape_.inputs, rows.data());
  for (std::int64_t row = 0; row < shape_.outputs; row += kStrip) {
    TROUPE_CHECK(backend.fill(matrix(0), row, kStrip, rows).ok());
  }
  for (int i = 1; i < shape_.matrices; ++i) {
    std::copy_n(ring_.data(), matrix_bytes_, matrix(static_cast<std::size_t>(i)).data);
  }
}

void MatmulTrial::run(std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  const std::span tokens = std::span(tokens_).first(count);
  const BatchView batch{tokens, tokens, {}, std::span(faulty_).first(count)};
  backend_.project_add(reinterpret_cast<float*>(outputs_.data()), reinterpret_cast<const float*>(inputs_.data()),
                       matrix(next_), batch);
  next_ = (next_ + 1) % static_cast<std::size_t>(shape_.matrices);
}

double MatmulTrial::multiply_adds(std::int64_t rows) const {
  return static_cast<double>(rows * shape_.outputs) * static_cast<double>(shape_.inputs);
}

}  // namespace troupe::kernel_bench
