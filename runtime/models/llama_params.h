// The numbers of a llama-architecture file, read from its metadata and checked against each other.
#pragma once

#include "kernels/result.h"
#include "runtime/load/gguf.h"
#include "runtime/models/model.h"

namespace troupe {

struct LlamaParams {
  ModelShape shape;
  float norm_epsilon = 0.0f;
  double rope_base = 10000.0;
  double rope_linear_factor = 1.0;
  int rope_dim = 0;

  // A missing key, a contradiction or an unsupported feature is an Error with the keys and the numbers.
  static Result<LlamaParams> read(const Gguf& file);
};

}  // namespace troupe
