// A matmul trial: one weight shape on one backend, run as the engine runs it, by Backend::project_add.
//
// "hot" is a matrix that stays in a core's second-level cache: what the kernel computes when weights cost nothing.
// "memory" is a ring of matrices well past the last-level cache, one a call: what a layer's matmul is in a model.
// Both take the whole operation: activations quantized, results added.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace troupe::kernel_bench {

struct TrialShape {
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  int matrices = 1;
};

TrialShape hot_shape(DType type);
// `bytes`: how large the ring is at least.
TrialShape memory_shape(DType type, std::size_t bytes);

// One backend for the trials of a path.
std::unique_ptr<Backend> trial_backend(Isa isa, int threads, std::int64_t most_rows);

class MatmulTrial {
 public:
  // The backend was reserved for most_rows and lives longer than this.
  MatmulTrial(Backend& backend, DType type, TrialShape shape, std::int64_t most_rows);

  void run(std::int64_t rows);  // one matrix, the next of the ring
  double multiply_adds(std::int64_t rows) const;
  double weight_bytes() const { return static_cast<double>(matrix_bytes_); }

 private:
  void fill_ring(Backend& backend);
  PreparedWeight matrix(std::size_t index) const;

  Backend& backend_;
  DType type_;
  TrialShape shape_;
  std::size_t matrix_bytes_ = 0;
  std::size_t next_ = 0;
  Buffer ring_, inputs_, outputs_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint8_t> faulty_;
};

}  // namespace troupe::kernel_bench
