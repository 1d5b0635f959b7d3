#include "tests/runtime/plain_llama.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "kernels/quant/formats.h"
#include "runtime/load/gguf.h"

namespace troupe::test {
namespace {

using Row = std::vector<double>;

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> values;

  Row times(const Row& x) const {
    Row y(static_cast<std::size_t>(rows), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j)
        y[static_cast<std::size_t>(i)] += at(i, j) * x[static_cast<std::size_t>(j)];
    }
    return y;
  }
  double at(std::int64_t row, std::int64_t col) const { return values[static_cast<std::size_t>(row * cols + col)]; }
};

class PlainLlama {
 public:
  explicit PlainLlama(const std::string& path) : file_(open(path)) {
    layers_ = count("block_count");
    heads_ = count("attention.head_count");
    kv_heads_ = count("attention.head_count_kv");
    dim_ =
        file_.find("llama.attention.key_length") ? count("attention.key_length") : count("embedding_length") / heads_;
    rope_dim_ = file_.find("llama.rope.dimension_count") ? count("rope.dimension_count") : dim_;
    epsilon_ = *file_.get_float("llama.attention.layer_norm_rms_epsilon");
    base_ = *file_.get_float("llama.rope.freq_base");
    if (file_.find("llama.rope.scaling.factor")) factor_ = *file_.get_float("llama.rope.scaling.factor");
    if (file_.find_tensor("rope_freqs.weight")) frequencies_ = matrix("rope_freqs.weight").values;
    past_.resize(static_cast<std::size_t>(layers_));
  }

  // The logits after one more token.
  Row step(TokenId token) {
    const Matrix embedding = matrix("token_embd.weight");
    Row h;
    for (std::int64_t j = 0; j < embedding.cols; ++j) h.push_back(embedding.at(token, j));
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      add(h, matrix(block + "attn_output.weight").times(attention(layer, normed(h, block + "attn_norm.weight"))));
      add(h, matrix(block + "ffn_down.weight").times(gated(block, normed(h, block + "ffn_norm.weight"))));
    }
    ++position_;
    const bool tied = file_.find_tensor("output.weight") == nullptr;
    return matrix(tied ? "token_embd.weight" : "output.weight").times(normed(h, "output_norm.weight"));
  }

 private:
  struct Token {
    Row k, v;
  };

  static Gguf open(const std::string& path) {
    auto file = Gguf::open(path);
    if (!file) throw std::runtime_error(file.error().message);
    return std::move(*file);
  }
  std::int64_t count(const std::string& key) const {
    return static_cast<std::int64_t>(*file_.get_uint("llama." + key));
  }

  Matrix matrix(const std::string& name) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) throw std::runtime_error(name + " is missing");
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor->bytes));
    if (!file_.read(*tensor, 0, bytes)) throw std::runtime_error(name + " cannot be read");
    Matrix matrix{tensor->rows, tensor->cols,
                  std::vector<float>(static_cast<std::size_t>(tensor->rows * tensor->cols))};
    quant::dequantize(tensor->type, bytes.data(), tensor->rows * tensor->cols, matrix.values.data());
    return matrix;
  }

  static void add(Row& h, const Row& y) { std::ranges::transform(h, y, h.begin(), std::plus<>()); }

  Row normed(const Row& x, const std::string& name) const {
    double squares = 0.0;
    for (double value : x) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon_);
    const Matrix weight = matrix(name);
    Row y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * static_cast<double>(weight.values[i]));
    return y;
  }

  void rotate(Row& heads) const {
    for (std::size_t head = 0; head < heads.size(); head += static_cast<std::size_t>(dim_)) {
      for (std::int64_t i = 0; i < rope_dim_ / 2; ++i) {
        double angle = static_cast<double>(position_) *
                       std::pow(base_, -2.0 * static_cast<double>(i) / static_cast<double>(rope_dim_)) / factor_;
        if (!frequencies_.empty()) angle /= static_cast<double>(frequencies_[static_cast<std::size_t>(i)]);
        double& a = heads[head + 2 * static_cast<std::size_t>(i)];
        double& b = heads[head + 2 * static_cast<std::size_t>(i) + 1];
        std::tie(a, b) =
            std::pair(a * std::cos(angle) - b * std::sin(angle), a * std::sin(angle) + b * std::cos(angle));
      }
    }
  }

  Row attention(std::int64_t layer, const Row& n) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    Row q = matrix(block + "attn_q.weight").times(n);
    Token now{matrix(block + "attn_k.weight").times(n), matrix(block + "attn_v.weight").times(n)};
    rotate(q);
    rotate(now.k);
    std::vector<Token>& past = past_[static_cast<std::size_t>(layer)];
    past.push_back(std::move(now));
    Row out;
    for (std::int64_t head = 0; head < heads_; ++head) attend(past, q, head, out);
    return out;
  }

  void attend(const std::vector<Token>& past, const Row& q, std::int64_t head, Row& out) const {
    const auto mine = static_cast<std::size_t>(head * dim_), size = static_cast<std::size_t>(dim_);
    const auto theirs = static_cast<std::size_t>(head / (heads_ / kv_heads_) * dim_);
    Row weights;
    for (const Token& token : past) {
      double dot = 0.0;
      for (std::size_t j = 0; j < size; ++j) dot += q[mine + j] * token.k[theirs + j];
      weights.push_back(dot / std::sqrt(static_cast<double>(dim_)));
    }
    const double best = *std::ranges::max_element(weights);
    double total = 0.0;
    for (double& weight : weights) total += weight = std::exp(weight - best);
    for (std::size_t j = 0; j < size; ++j) {
      double sum = 0.0;
      for (std::size_t t = 0; t < past.size(); ++t) sum += weights[t] / total * past[t].v[theirs + j];
      out.push_back(sum);
    }
  }

  Row gated(const std::string& block, const Row& n) const {
    Row gate = matrix(block + "ffn_gate.weight").times(n);
    const Row up = matrix(block + "ffn_up.weight").times(n);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
    return gate;
  }

  Gguf file_;
  std::int64_t layers_, heads_, kv_heads_, dim_, rope_dim_;
  double epsilon_, base_, factor_ = 1.0;
  std::vector<float> frequencies_;
  std::int64_t position_ = 0;
  std::vector<std::vector<Token>> past_;  // of each layer
};

}  // namespace

std::vector<double> plain_llama_logits(const std::string& path, const std::vector<TokenId>& tokens) {
  PlainLlama model(path);
  std::vector<double> logits;
  for (TokenId token : tokens) {
    const Row row = model.step(token);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace troupe::test
