// The CPU backend: the phases of kernels/backend.h over a thread pool, by one instruction set's path.
//
// A phase is one to three parallel regions: rows are normed and quantized into register-tile order, then tiles of 16
// outputs are claimed by the threads; what follows a matmul (the residual sum, SwiGLU) happens in the tile's epilogue.
// Weights are read from memory once a launch: all row tiles of a batch pass over a pair of weight tiles while it is in
// the cache. All scratch is made in reserve(); no operation allocates.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/path.h"
#include "kernels/cpu/thread_pool.h"

namespace troupe::cpu {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Path& path, int threads, Numa numa);

  std::string describe() const override;
  Buffer allocate(std::size_t bytes) override;
  std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const override;
  Result<void> fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                    std::span<const std::byte> file_rows) override;
  void reserve(const Limits& limits) override;

  void embed(float* h, const PreparedWeight& table, const BatchView& batch) override;
  void qkv(const QkvArgs& args, const BatchView& batch) override;
  void attend(const AttendArgs& args, const BatchView& batch) override;
  void project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) override;
  void gate_up(const GateUpArgs& args, const BatchView& batch) override;
  void down_add(float* h, const float* act, const PreparedWeight& w, const BatchView& batch) override;
  void head(const HeadArgs& args, const BatchView& batch) override;
  void top_candidates(std::span<const TopRequest> requests) override;
  void log_sum_exp(std::span<const LogSumRequest> requests) override;

 private:
  // Rows of activations in both forms that weights may want.
  struct Rows {
    const float* floats = nullptr;  // [count][cols]
    std::int64_t count = 0;
    std::int64_t cols = 0;
  };
  // The weights of a phase that multiply the same rows.
  using Weights = std::initializer_list<const PreparedWeight*>;
  // A tile of rows.
  struct TilePlace {
    std::int64_t first;  // first row of the tile
    int rows;
    // Where its inputs from `from` on begin, in bytes, among quantized rows of `cols` inputs.
    std::int64_t quantized_at(std::int64_t cols, std::int64_t from) const {
      return QuantLayout::bytes(first, cols) + QuantLayout::bytes(rows, from);
    }
  };
  // The inputs of a tile's rows, `cols` from `from` on, that one thread makes ready.
  struct TilePart {
    const TilePlace& place;
    std::int64_t from, cols;
  };
  // A strip is the weight tiles of one claim's unit: one or two tiles of one weight.
  struct Strip {
    const PreparedWeight* weight;
    std::int64_t tile;
    int tiles;
    float* out;
  };
  // Rows of one sequence whose attention is one unit for each kv head.
  struct AttendSlice {
    const SequenceView* sequence;
    std::int64_t first_row, rows;  // within the sequence
    std::int64_t cost() const { return rows * (sequence->position + first_row + rows); }
  };

  bool wants_wide(std::int64_t rows, Weights weights) const;
  void plan_tiles(Weights weights);
  std::int64_t part_count() const { return static_cast<std::int64_t>(places_.size()) * tile_parts_; }
  TilePart tile_part(std::int64_t i) const;
  // h (or the rows of it that `pick` names) normed into normed_, and quantized if any weight is.
  void norm_rows(const float* h, const NormWeight& norm, std::span<const std::int32_t> pick, std::int64_t rows,
                 Weights weights, std::span<std::uint8_t> faulty);
  void take_rows(const float* x, std::int64_t rows, const PreparedWeight& weight, std::span<std::uint8_t> faulty);
  // Results of a pair of weight tiles, a quantization block of 32, as inputs of a weight of `cols` inputs: into spare_.
  void quantize_results(const TilePlace& place, std::int64_t column, std::int64_t cols, const float* results,
                        std::span<std::uint8_t> faulty);
  // False in `finite` where a row's inputs are not all finite.
  void quantize_part(const TilePart& part, bool* finite);
  // Calls make(part, finite) for every part of rows_, and marks the rows whose `finite` it made false.
  template <class Make>
  void for_parts(std::span<const std::int32_t> pick, std::span<std::uint8_t> faulty, Make&& make);
  Path::Matmul matmul(DType type) const {
    return (wide_ ? path_.wide.matmul : path_.matmul)[static_cast<std::size_t>(type)];
  }
  ActTile act_tile(const TilePlace& place, std::size_t stride) const;
  // Calls done(strip, place, results) for every strip and row tile; results are [rows][16 * tiles].
  template <class Done>
  void for_strips(Done&& done);
  void add_strips(const PreparedWeight& weight, float* out);
  void matmul_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch);

  void store_rows(const AttendArgs& args, const SequenceView& sequence, int kv_head);
  void attend_slice(const AttendArgs& args, const AttendSlice& slice, int kv_head);
  void plan_attention(const BatchView& batch);

  const Path& path_;
  ThreadPool pool_;
  std::vector<int> nodes_;  // that memory lies on in turn; empty: where it is first written
  Rows rows_;
  std::vector<TilePlace> places_;
  bool wide_ = false;                            // whether the places are of the path's wide tiles
  std::int64_t tile_parts_ = 1, part_cols_ = 0;  // of each place
  std::vector<Strip> strips_;
  std::vector<AttendSlice> slices_;
  Buffer normed_, quantized_;
  Buffer spare_;                               // where a phase quantizes for the next, while it reads quantized_
  const PreparedWeight* ready_for_ = nullptr;  // whose inputs quantized_ already holds
};

}  // namespace troupe::cpu
