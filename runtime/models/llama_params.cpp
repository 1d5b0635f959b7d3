#include "runtime/models/llama_params.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "runtime/text/printable.h"

namespace troupe {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 24;  // of any extent: products of two stay far inside 64 bits

// Reads keys below one prefix and keeps the first error, so that the caller can read all and look once.
class Reader {
 public:
  Reader(const Gguf& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  bool has(const std::string& key) const { return file_.find(prefix_ + key) != nullptr; }
  std::int64_t count(const std::string& key) {
    auto value = file_.get_uint(prefix_ + key);
    if (!value) return fail(value.error());
    if (*value == 0 || *value > static_cast<std::uint64_t>(kMost)) {
      return fail({ErrorCode::bad_input, prefix_ + key + " is " + std::to_string(*value) + "; 1 to " +
                                             std::to_string(kMost) + " are possible"});
    }
    return static_cast<std::int64_t>(*value);
  }
  std::int64_t count_or(const std::string& key, std::int64_t otherwise) { return has(key) ? count(key) : otherwise; }
  double positive(const std::string& key) {
    auto value = file_.get_float(prefix_ + key);
    if (!value) return static_cast<double>(fail(value.error()));
    if (!(*value > 0.0) || !std::isfinite(*value)) {
      return static_cast<double>(
          fail({ErrorCode::bad_input, prefix_ + key + " is " + std::to_string(*value) + "; it must be above 0"}));
    }
    return *value;
  }
  double positive_or(const std::string& key, double otherwise) { return has(key) ? positive(key) : otherwise; }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::int64_t fail(Error error) {
    if (!error_) error_ = std::move(error);
    return 1;
  }
  const Gguf& file_;
  std::string prefix_;
  std::optional<Error> error_;
};

Result<void> check(const LlamaParams& params) {
  const ModelShape& s = params.shape;
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::bad_input, what}; };
  if (s.heads % s.kv_heads != 0) {
    return wrong("llama.attention.head_count is " + std::to_string(s.heads) + ", not a multiple of head_count_kv, " +
                 std::to_string(s.kv_heads));
  }
  if (params.rope_dim % 2 != 0 || params.rope_dim > s.head_dim) {
    return wrong("llama.rope.dimension_count is " + std::to_string(params.rope_dim) +
                 "; it must be even and at most the head's " + std::to_string(s.head_dim));
  }
  if (s.head_dim % 16 != 0 || s.head_dim > 256)
    return Error{ErrorCode::unsupported,
                 "heads of " + std::to_string(s.head_dim) + " elements; multiples of 16 up to 256 are supported"};
  return {};
}

Result<double> linear_factor(const Gguf& file, Reader& reader) {
  constexpr const char* kType = "llama.rope.scaling.type";
  auto type = file.get_string(kType);
  if (!type && file.find(kType) != nullptr) return type.error();
  if (type && *type != "none" && *type != "linear") {
    return Error{ErrorCode::unsupported,
                 "llama.rope.scaling.type is '" + printable(*type, 60) + "'; 'none' and 'linear' are supported"};
  }
  if (type && *type == "none") return 1.0;
  return reader.positive_or("rope.scaling.factor", reader.positive_or("rope.scale_linear", 1.0));
}

}  // namespace

Result<LlamaParams> LlamaParams::read(const Gguf& file) {
  Reader reader(file, "llama.");
  LlamaParams params;
  ModelShape& s = params.shape;
  s.architecture = "llama";
  if (auto name = file.get_string("general.name")) s.name = *name;
  s.layers = reader.count("block_count");
  s.width = reader.count("embedding_length");
  s.heads = reader.count("attention.head_count");
  s.kv_heads = reader.count_or("attention.head_count_kv", s.heads);
  s.ffn = reader.count("feed_forward_length");
  s.context = reader.count("context_length");
  if (reader.error()) return *reader.error();
  if (!reader.has("attention.key_length") && s.width % s.heads != 0) {
    return Error{ErrorCode::bad_input, "llama.embedding_length is " + std::to_string(s.width) +
                                           ", not a multiple of head_count, " + std::to_string(s.heads)};
  }
  s.head_dim = reader.count_or("attention.key_length", s.width / s.heads);
  if (reader.count_or("attention.value_length", s.head_dim) != s.head_dim) {
    return Error{ErrorCode::unsupported, "llama.attention.key_length and value_length differ; they must be equal"};
  }
  if (reader.has("expert_count") && file.get_uint("llama.expert_count") && *file.get_uint("llama.expert_count") > 0) {
    return Error{ErrorCode::unsupported, "llama.expert_count is set: mixtures of experts are not supported"};
  }
  params.norm_epsilon = static_cast<float>(reader.positive("attention.layer_norm_rms_epsilon"));
  params.rope_base = reader.positive_or("rope.freq_base", 10000.0);
  params.rope_dim = static_cast<int>(reader.count_or("rope.dimension_count", s.head_dim));
  auto factor = linear_factor(file, reader);
  if (!factor) return factor.error();
  params.rope_linear_factor = *factor;
  if (reader.error()) return *reader.error();
  if (auto checked = check(params); !checked) return checked.error();
  return params;
}

}  // namespace troupe
