// DecoratedBackend: passes everything on to another backend, so that a test can change one thing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/fault.h"

namespace troupe::test {

class DecoratedBackend : public Backend {
 public:
  explicit DecoratedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string describe() const override { return inner_->describe(); }
  Buffer allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const override {
    return inner_->weight_bytes(type, rows, cols);
  }
  Result<void> fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                    std::span<const std::byte> file_rows) override {
    return inner_->fill(weight, first_row, row_count, file_rows);
  }
  void reserve(const Limits& limits) override { inner_->reserve(limits); }
  void embed(float* h, const PreparedWeight& table, const BatchView& batch) override { inner_->embed(h, table, batch); }
  void qkv(const QkvArgs& args, const BatchView& batch) override { inner_->qkv(args, batch); }
  void attend(const AttendArgs& args, const BatchView& batch) override { inner_->attend(args, batch); }
  void project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) override {
    inner_->project_add(h, x, w, batch);
  }
  void gate_up(const GateUpArgs& args, const BatchView& batch) override { inner_->gate_up(args, batch); }
  void down_add(float* h, const float* act, const PreparedWeight& w, const BatchView& batch) override {
    inner_->down_add(h, act, w, batch);
  }
  void head(const HeadArgs& args, const BatchView& batch) override { inner_->head(args, batch); }
  void top_candidates(std::span<const TopRequest> requests) override { inner_->top_candidates(requests); }
  void log_sum_exp(std::span<const LogSumRequest> requests) override { inner_->log_sum_exp(requests); }

 protected:
  Backend& inner() { return *inner_; }

 private:
  std::unique_ptr<Backend> inner_;
};

// The mistake that the crowd test exists for: with more than one row, the sum is rounded once more.
class BatchDependentBackend final : public DecoratedBackend {
 public:
  using DecoratedBackend::DecoratedBackend;
  void project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) override {
    if (batch.rows() == 1) return inner().project_add(h, x, w, batch);
    std::vector<float> product(static_cast<std::size_t>(batch.rows() * w.rows));
    inner().project_add(product.data(), x, w, batch);
    for (std::size_t i = 0; i < product.size(); ++i) h[i] = (h[i] + 0.25f * product[i]) + 0.75f * product[i];
  }
};

// Throws in the middle of a launch, when asked to.
class ThrowingBackend final : public DecoratedBackend {
 public:
  ThrowingBackend(std::unique_ptr<Backend> inner, const bool& armed)
      : DecoratedBackend(std::move(inner)), armed_(armed) {}
  void gate_up(const GateUpArgs& args, const BatchView& batch) override {
    if (armed_) throw StepFault("planted");
    DecoratedBackend::gate_up(args, batch);
  }

 private:
  const bool& armed_;
};

}  // namespace troupe::test
