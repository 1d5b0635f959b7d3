// Model: immutable weights and the equations of one architecture.
//
// A new architecture is one file with the equations and one line in the registry (models/registry.cpp). Batch size
// occurs nowhere (it is the number of rows); sequences occur only inside Backend::attend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "kernels/result.h"
#include "runtime/load/gguf.h"

namespace troupe {

// What the rest of the house may know of a model.
struct ModelShape {
  std::string architecture;  // general.architecture
  std::string name;          // general.name
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;        // positions the model was trained for
  std::uint64_t weight_bytes = 0;  // resident
  std::uint64_t fingerprint = 0;   // of the rope angles, as this host computes them
};

// Row matrices of one launch, float32, from Backend::allocate.
struct Activations {
  float* h = nullptr;         // [rows][width]
  float* q = nullptr;         // [rows][heads * head_dim]
  float* k = nullptr;         // [rows][kv_heads * head_dim]
  float* v = nullptr;         // [rows][kv_heads * head_dim]
  float* attended = nullptr;  // [rows][heads * head_dim]
  float* act = nullptr;       // [rows][ffn]
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelShape& shape() const = 0;
  // h of every row after the last layer. Writes keys and values of all rows into the sequences' pages.
  virtual void forward(Backend& backend, const BatchView& batch, const KvLayout& layout, Activations& act) const = 0;
  // logits[i] of row rows[i]: [rows.size()][vocabulary].
  virtual void logits(Backend& backend, const BatchView& batch, std::span<const std::int32_t> rows, const float* h,
                      float* out) const = 0;
};

struct LoadOptions {
  std::int64_t context = 0;    // positions to prepare for; 0: what the file says
  bool expand_to_f32 = false;  // store every matrix as F32
  int threads = 2;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes; may be empty
};

// Loads the architecture that the file names; unsupported ones are refused with the list of known ones.
Result<std::unique_ptr<Model>> load_model(const Gguf& file, Backend& backend, const LoadOptions& options);

}  // namespace troupe
