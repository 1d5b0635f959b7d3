// The reference backend: docs/numerics.md as plain scalar code on one thread, weights as they stand in the file.
#include <cstring>
#include <vector>

#include "kernels/backend.h"
#include "kernels/check.h"
#include "kernels/float_mode.h"
#include "kernels/math.h"
#include "kernels/quant/formats.h"
#include "kernels/reductions.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/matmul.h"
#include "kernels/reference/rows.h"

namespace troupe {
namespace {

using namespace reference;

std::int64_t row_bytes(const PreparedWeight& w) {
  return Tensor{w.data, w.type, w.rows, w.cols}.row_bytes();
}

class ReferenceBackend final : public Backend {
 public:
  std::string describe() const override { return "reference"; }
  Buffer allocate(std::size_t bytes) override { return allocate_host(bytes); }

  std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const override {
    const auto bytes = static_cast<std::size_t>(rows * Tensor{nullptr, type, rows, cols}.row_bytes());
    return (bytes + 63) / 64 * 64;
  }

  Result<void> fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                    std::span<const std::byte> file_rows) override {
    TROUPE_CHECK(first_row + row_count <= weight.rows);
    TROUPE_CHECK(static_cast<std::int64_t>(file_rows.size()) == row_count * row_bytes(weight));
    const std::int64_t row_blocks = weight.cols / traits(weight.type).block;
    const std::int64_t bad = quant::find_non_finite(weight.type, file_rows.data(), row_count * row_blocks);
    if (bad >= 0) {
      return Error{ErrorCode::bad_input,
                   "row " + std::to_string(first_row + bad / row_blocks) + " holds a value that is not finite"};
    }
    std::memcpy(weight.data + first_row * row_bytes(weight), file_rows.data(), file_rows.size());
    return {};
  }

  void reserve(const Limits& limits) override {
    const auto floats = static_cast<std::size_t>(limits.rows * limits.widest);
    normed_.resize(floats);
    product_.resize(floats);
    matmul_.reserve(limits.rows, limits.widest);
    attend_.reserve(limits.head_dim);
  }

  void embed(float* h, const PreparedWeight& table, const BatchView& batch) override {
    const FloatMode mode;
    for (std::int64_t r = 0; r < batch.rows(); ++r) {
      const std::int64_t token = batch.tokens[static_cast<std::size_t>(r)];
      TROUPE_CHECK(token >= 0 && token < table.rows);
      quant::dequantize(table.type, table.data + token * row_bytes(table), table.cols, h + r * table.cols);
    }
  }

  void qkv(const QkvArgs& args, const BatchView& batch) override {
    const FloatMode mode;
    norm_rows(args.h, args.norm, batch);
    multiply(args.q, normed_.data(), args.wq, batch);
    multiply(args.k, normed_.data(), args.wk, batch);
    multiply(args.v, normed_.data(), args.wv, batch);
  }

  void attend(const AttendArgs& args, const BatchView& batch) override {
    const FloatMode mode;
    for (const SequenceView& sequence : batch.sequences) {
      for (std::int32_t i = 0; i < sequence.rows; ++i) rotate_and_store(args, sequence, i);
      for (std::int32_t i = 0; i < sequence.rows; ++i) attend_heads(args, sequence, i);
    }
  }

  void project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) override {
    const FloatMode mode;
    multiply(product_.data(), x, w, batch);
    for (std::int64_t i = 0; i < batch.rows() * w.rows; ++i) h[i] += product_[static_cast<std::size_t>(i)];
  }

  void gate_up(const GateUpArgs& args, const BatchView& batch) override {
    const FloatMode mode;
    norm_rows(args.h, args.norm, batch);
    multiply(args.act, normed_.data(), args.wgate, batch);
    multiply(product_.data(), normed_.data(), args.wup, batch);
    for (std::int64_t i = 0; i < batch.rows() * args.wup.rows; ++i) {
      args.act[i] = silu_contract(args.act[i]) * product_[static_cast<std::size_t>(i)];
    }
  }

  void down_add(float* h, const float* act, const PreparedWeight& w, const BatchView& batch) override {
    project_add(h, act, w, batch);
  }

  void head(const HeadArgs& args, const BatchView& batch) override {
    const FloatMode mode;
    const auto count = static_cast<std::int64_t>(args.rows.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t row = args.rows[static_cast<std::size_t>(i)];
      norm_row(args.h, args.norm, row, i, batch);
    }
    matmul({args.logits, normed_.data(), count, args.w, batch.faulty, args.rows.data()}, matmul_);
  }

  void top_candidates(std::span<const TopRequest> requests) override {
    const FloatMode mode;
    for (const TopRequest& request : requests) troupe::top_candidates(request);
  }

  void log_sum_exp(std::span<const LogSumRequest> requests) override {
    const FloatMode mode;
    for (const LogSumRequest& request : requests)
      *request.out = troupe::log_sum_exp(request.logits, request.vocabulary);
  }

 private:
  // Row `row` of h, normed, to row `to` of normed_.
  void norm_row(const float* h, const NormWeight& norm, std::int64_t row, std::int64_t to, const BatchView& batch) {
    const auto cols = static_cast<std::int64_t>(norm.weight.size());
    TROUPE_CHECK((to + 1) * cols <= static_cast<std::int64_t>(normed_.size()));
    if (!rms_norm(h + row * cols, norm, normed_.data() + to * cols)) batch.faulty[static_cast<std::size_t>(row)] = 1;
  }

  void norm_rows(const float* h, const NormWeight& norm, const BatchView& batch) {
    for (std::int64_t r = 0; r < batch.rows(); ++r) norm_row(h, norm, r, r, batch);
  }

  void multiply(float* y, const float* x, const PreparedWeight& w, const BatchView& batch) {
    TROUPE_CHECK(y != product_.data() || batch.rows() * w.rows <= static_cast<std::int64_t>(product_.size()));
    matmul({y, x, batch.rows(), w, batch.faulty}, matmul_);
  }

  void rotate_and_store(const AttendArgs& args, const SequenceView& sequence, std::int64_t i) {
    const std::int64_t row = sequence.first_row + i, position = sequence.position + i;
    const std::int64_t dim = args.layout.head_dim, kv_heads = args.layout.kv_heads;
    for (std::int64_t h = 0; h < args.heads; ++h) rope(args.q + (row * args.heads + h) * dim, args.rope, position);
    for (int g = 0; g < kv_heads; ++g) {
      const std::int64_t at = (row * kv_heads + g) * dim;
      rope(args.k + at, args.rope, position);
      KvHead{sequence.pages, args.layout, args.layer, g}.store(position, args.k + at, args.v + at);
    }
  }

  void attend_heads(const AttendArgs& args, const SequenceView& sequence, std::int64_t i) {
    const int group = args.heads / args.layout.kv_heads;
    for (int h = 0; h < args.heads; ++h) {
      const std::int64_t at = ((sequence.first_row + i) * args.heads + h) * args.layout.head_dim;
      const KvHead kv{sequence.pages, args.layout, args.layer, h / group};
      attend_row(kv, sequence.position + i, args.q + at, args.scale, attend_, args.out + at);
    }
  }

  std::vector<float> normed_;   // [rows][widest]
  std::vector<float> product_;  // [rows][widest]: a matmul's result before it is added or combined
  MatmulScratch matmul_;
  AttendScratch attend_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace troupe
