// What the conformance tests share: the reference, every path this processor can run with 1, 2 and 3 threads, and each
// phase of a layer run on one backend with poisoned outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/support/poisoned.h"
#include "tests/support/random.h"
#include "tests/support/test_weight.h"

namespace troupe::test {

inline constexpr int kFormats = 11;
std::vector<DType> all_formats();
// Inputs a weight of this type can have: multiples of 32, or of 256 for the K formats.
std::vector<std::int64_t> ragged_cols(DType type);

struct NamedBackend {
  std::string name;
  std::unique_ptr<Backend> backend;
};

// One of each, made at first use and kept: starting threads costs more than most of the tests.
class Lab {
 public:
  static Lab& get();

  Backend& reference() { return *reference_; }
  // Every supported path with 1, 2 and 3 threads; where AVX-512 VNNI is, the amx path over emulated tile registers too.
  std::vector<NamedBackend>& paths() { return paths_; }

 private:
  Lab();
  void add(const std::string& path, int threads, std::unique_ptr<Backend> backend);

  std::unique_ptr<Backend> reference_;
  std::vector<NamedBackend> paths_;
};

inline constexpr Backend::Limits kLabLimits{
    .rows = 260, .widest = 1024, .heads = 12, .head_dim = 128, .vocabulary = 49152};

// A launch of `rows` rows of one sequence, for the phases that know no sequences.
class RowLaunch {
 public:
  explicit RowLaunch(std::int64_t rows, std::int64_t vocabulary = 1);
  BatchView view() { return {tokens, positions_, {}, faulty}; }

  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> faulty;

 private:
  std::vector<std::int32_t> positions_;
};

// What one backend gave: all output floats, one after the other, and the rows it marked.
struct Output {
  std::vector<float> values;
  std::vector<std::uint8_t> faulty;
  bool intact = true;  // nothing was written outside
};

// Inputs of the row phases. h is [rows][cols].
struct RowInputs {
  std::vector<float> h;
  std::vector<float> norm;  // [cols]
  std::int64_t rows = 0, cols = 0;
};
RowInputs random_inputs(std::int64_t rows, std::int64_t cols, Random& random);

// Each runs the first `rows` rows.
Output run_qkv(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& wq, const FileMatrix& wk,
               const FileMatrix& wv);
Output run_gate_up(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& gate,
                   const FileMatrix& up);
// gate_up and down_add, one after the other; down is announced to gate_up or not.
Output run_feed_forward(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& gate,
                        const FileMatrix& down, bool announced);
// h (the added-to rows) is random from the seed; in.h is the multiplied input.
Output run_project_add(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& w);
Output run_down_add(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& w);
Output run_head(Backend& backend, const RowInputs& in, std::int64_t rows, std::span<const std::int32_t> wanted,
                const FileMatrix& w);
Output run_embed(Backend& backend, const FileMatrix& table, std::span<const std::int32_t> tokens);

// The part of a result of `rows` rows that belongs to the first `part` of them, for a phase with one output of `width`.
Output first_rows(const Output& all, std::int64_t part, std::int64_t width);

// Empty when the two are the same; else where they differ.
std::string difference(const Output& expected, const Output& actual);

// FNV-1a over the bits; any NaN counts as one and the same.
std::uint64_t hash(const Output& output);

}  // namespace troupe::test
