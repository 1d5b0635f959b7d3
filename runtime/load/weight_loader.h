// load_weights: from the file straight into device-ready memory, once.
//
// All matrices of a model share one Buffer, so that small ones lie in huge pages too. Threads claim matrices and read
// them in slices of 16-row granules; together their staging buffers take at most kStaging bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "runtime/load/gguf.h"

namespace troupe {

// A matrix that the architecture names, with the shape that its metadata asks for.
struct WeightRequest {
  std::string name;
  std::int64_t rows = 0;  // outputs
  std::int64_t cols = 0;  // inputs
};

struct WeightOptions {
  bool expand_to_f32 = false;  // store every matrix as F32
  int threads = 2;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // file bytes; called on the caller's thread

  static constexpr std::size_t kStaging = std::size_t{8} << 20;
};

struct WeightSet {
  Buffer memory;
  std::vector<PreparedWeight> weights;  // in the order of the requests
};

// Refuses missing tensors, other shapes (both named), and non-finite scales (row named). Lets through what the backend
// throws (DeviceFault).
Result<WeightSet> load_weights(const Gguf& file, Backend& backend, std::span<const WeightRequest> requests,
                               const WeightOptions& options);

// Refuses a file with a tensor that is not in `known`: a bias that the equations leave out would go unnoticed.
Result<void> refuse_other_tensors(const Gguf& file, std::vector<std::string> known);

// A vector such as a norm's weight, as float32; must be finite.
Result<std::vector<float>> load_vector(const Gguf& file, std::string_view name, std::int64_t size);

}  // namespace troupe
