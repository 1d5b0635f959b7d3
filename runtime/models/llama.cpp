#include "runtime/models/llama.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/load/weight_loader.h"
#include "runtime/models/llama_params.h"

namespace troupe {
namespace {

constexpr std::int64_t kMostPositions = std::int64_t{1} << 20;  // 512 MiB of angles in heads of 128

struct Layer {
  std::vector<float> attention_norm, ffn_norm;  // [width]
  PreparedWeight wq, wk, wv, wo;                // [heads x dim | kv_heads x dim | kv_heads x dim | width][width ...]
  PreparedWeight wgate, wup, wdown;             // [ffn][width], [ffn][width], [width][ffn]
};

class Llama final : public Model {
 public:
  const ModelShape& shape() const override { return params_.shape; }

  void forward(Backend& backend, const BatchView& batch, const KvLayout& layout, Activations& act) const override {
    const float scale = 1.0f / std::sqrt(static_cast<float>(params_.shape.head_dim));
    const int heads = static_cast<int>(params_.shape.heads);
    backend.embed(act.h, embedding_, batch);
    for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
      const Layer& layer = layers_[static_cast<std::size_t>(i)];
      backend.qkv({act.q, act.k, act.v, act.h, norm(layer.attention_norm), layer.wq, layer.wk, layer.wv}, batch);
      backend.attend({act.attended, act.q, act.k, act.v, rope_, layout, i, heads, scale}, batch);
      backend.project_add(act.h, act.attended, layer.wo, batch);
      backend.gate_up({act.act, act.h, norm(layer.ffn_norm), layer.wgate, layer.wup, &layer.wdown}, batch);
      backend.down_add(act.h, act.act, layer.wdown, batch);
    }
  }

  void logits(Backend& backend, const BatchView& batch, std::span<const std::int32_t> rows, const float* h,
              float* out) const override {
    backend.head({out, h, rows, norm(output_norm_), head_}, batch);
  }

  static Result<std::unique_ptr<Model>> load(const Gguf& file, Backend& backend, const LoadOptions& options);

 private:
  NormWeight norm(const std::vector<float>& weight) const { return {weight, params_.norm_epsilon}; }
  Result<void> load_matrices(const Gguf& file, Backend& backend, const LoadOptions& options);
  Result<void> load_norms(const Gguf& file);
  Result<void> load_rope(const Gguf& file, std::int64_t positions);
  std::vector<WeightRequest> requests(const Gguf& file) const;
  std::vector<std::string> tensor_names(const Gguf& file) const;

  LlamaParams params_;
  Buffer memory_;  // of all matrices
  PreparedWeight embedding_, head_;
  std::vector<float> output_norm_;
  std::vector<Layer> layers_;
  RopeTable rope_;
};

std::string block(std::int64_t layer, const char* name) {
  return "blk." + std::to_string(layer) + "." + name + ".weight";
}

std::vector<WeightRequest> Llama::requests(const Gguf& file) const {
  const ModelShape& s = params_.shape;
  const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  std::vector<WeightRequest> all{{"token_embd.weight", s.vocabulary, s.width}};
  for (std::int64_t i = 0; i < s.layers; ++i) {
    all.push_back({block(i, "attn_q"), q, s.width});
    all.push_back({block(i, "attn_k"), kv, s.width});
    all.push_back({block(i, "attn_v"), kv, s.width});
    all.push_back({block(i, "attn_output"), s.width, q});
    all.push_back({block(i, "ffn_gate"), s.ffn, s.width});
    all.push_back({block(i, "ffn_up"), s.ffn, s.width});
    all.push_back({block(i, "ffn_down"), s.width, s.ffn});
  }
  if (file.find_tensor("output.weight") != nullptr) all.push_back({"output.weight", s.vocabulary, s.width});
  return all;
}

std::vector<std::string> Llama::tensor_names(const Gguf& file) const {
  std::vector<std::string> names{"output_norm.weight", "rope_freqs.weight"};
  for (WeightRequest& one : requests(file)) names.push_back(std::move(one.name));
  for (std::int64_t i = 0; i < params_.shape.layers; ++i) {
    for (const char* norm : {"attn_norm", "ffn_norm"}) names.push_back(block(i, norm));
  }
  return names;
}

Result<void> Llama::load_matrices(const Gguf& file, Backend& backend, const LoadOptions& options) {
  const std::vector<WeightRequest> wanted = requests(file);
  auto set = load_weights(file, backend, wanted, {options.expand_to_f32, options.threads, options.progress});
  if (!set) return set.error();
  memory_ = std::move(set->memory);
  params_.shape.weight_bytes = memory_.size();
  auto next = set->weights.begin();
  embedding_ = *next++;
  for (Layer& layer : layers_) {
    for (PreparedWeight* place : {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.wgate, &layer.wup, &layer.wdown}) {
      *place = *next++;
    }
  }
  head_ = next == set->weights.end() ? embedding_ : *next;
  return {};
}

Result<void> Llama::load_norms(const Gguf& file) {
  const auto load = [&](const std::string& name, std::vector<float>& place) -> Result<void> {
    auto vector = load_vector(file, name, params_.shape.width);
    if (!vector) return vector.error();
    place = std::move(*vector);
    return {};
  };
  if (auto loaded = load("output_norm.weight", output_norm_); !loaded) return loaded;
  for (std::int64_t i = 0; i < params_.shape.layers; ++i) {
    Layer& layer = layers_[static_cast<std::size_t>(i)];
    if (auto loaded = load(block(i, "attn_norm"), layer.attention_norm); !loaded) return loaded;
    if (auto loaded = load(block(i, "ffn_norm"), layer.ffn_norm); !loaded) return loaded;
  }
  return {};
}

Result<void> Llama::load_rope(const Gguf& file, std::int64_t positions) {
  RopeParams rope{params_.rope_dim, params_.rope_base, params_.rope_linear_factor, {}, RopePairs::neighbours};
  std::vector<float> factors;
  if (file.find_tensor("rope_freqs.weight") != nullptr) {
    auto loaded = load_vector(file, "rope_freqs.weight", params_.rope_dim / 2);
    if (!loaded) return loaded.error();
    factors = std::move(*loaded);
    if (std::ranges::any_of(factors, [](float f) { return f <= 0.0f; })) {
      return Error{ErrorCode::bad_input, "rope_freqs.weight holds a factor that is not above 0"};
    }
    rope.frequency_factors = factors;
  }
  rope_ = RopeTable::create(rope, positions);
  params_.shape.fingerprint ^= rope_hash(rope);
  return {};
}

Result<std::unique_ptr<Model>> Llama::load(const Gguf& file, Backend& backend, const LoadOptions& options) {
  auto params = LlamaParams::read(file);
  if (!params) return params.error();
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) return Error{ErrorCode::bad_input, "tensor token_embd.weight is missing"};
  auto model = std::make_unique<Llama>();
  model->params_ = std::move(*params);
  ModelShape& shape = model->params_.shape;
  shape.vocabulary = embedding->rows;
  // Every layer has tensors of its own: a count that the tensor table cannot hold is refused before anything is made.
  if (shape.layers > static_cast<std::int64_t>(file.tensors().size())) {
    return Error{ErrorCode::bad_input, "llama.block_count is " + std::to_string(shape.layers) + "; the file has only " +
                                           std::to_string(file.tensors().size()) + " tensors"};
  }
  const std::int64_t positions = options.context > 0 ? options.context : shape.context;
  if (positions > kMostPositions) {
    return Error{ErrorCode::unsupported, "the model's context is " + std::to_string(positions) +
                                             " tokens; ask for at most " + std::to_string(kMostPositions) +
                                             " with --context"};
  }
  model->layers_.resize(static_cast<std::size_t>(shape.layers));
  if (auto checked = refuse_other_tensors(file, model->tensor_names(file)); !checked) return checked.error();
  if (auto loaded = model->load_norms(file); !loaded) return loaded.error();
  if (auto loaded = model->load_matrices(file, backend, options); !loaded) return loaded.error();
  if (auto loaded = model->load_rope(file, positions); !loaded) return loaded.error();
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama(const Gguf& file, Backend& backend, const LoadOptions& options) {
  return Llama::load(file, backend, options);
}

}  // namespace troupe
