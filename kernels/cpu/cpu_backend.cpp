#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "kernels/check.h"
#include "kernels/cpu/candidates.h"
#include "kernels/cpu/tiles.h"
#include "kernels/quant/formats.h"
#include "kernels/reductions.h"

namespace troupe::cpu {
namespace {

bool is_quantized(const PreparedWeight& weight) {
  return traits(weight.type).block > 1;
}

}  // namespace

CpuBackend::CpuBackend(const Path& path, int threads, Numa numa) : path_(path), pool_(threads) {
  if (numa == Numa::interleave) nodes_ = memory_nodes();
  if (nodes_.size() < 2) nodes_.clear();
}

std::string CpuBackend::describe() const {
  return std::string("cpu ") + path_.name + ", " + std::to_string(pool_.threads()) +
         (pool_.threads() == 1 ? " thread" : " threads") +
         (nodes_.empty() ? "" : ", memory on " + std::to_string(nodes_.size()) + " nodes in turn");
}

// A refusal by the system is no error: the memory then lies where it is first written, and is slower to read from afar.
Buffer CpuBackend::allocate(std::size_t bytes) {
  Buffer memory = allocate_host(bytes);
  if (!nodes_.empty() && bytes >= kHugePage) interleave(memory.data(), bytes, nodes_);
  return memory;
}

std::size_t CpuBackend::weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const {
  return cpu::weight_bytes(type, rows, cols);
}

Result<void> CpuBackend::fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                              std::span<const std::byte> file_rows) {
  const TypeTraits& type = traits(weight.type);
  const std::int64_t blocks = weight.cols / type.block;
  TROUPE_CHECK(static_cast<std::int64_t>(file_rows.size()) == row_count * blocks * type.bytes);
  if (weight.cols % kTileRows != 0) {
    return Error{ErrorCode::unsupported,
                 "rows of " + std::to_string(weight.cols) + " inputs; multiples of 16 are supported"};
  }
  if (const std::int64_t bad = quant::find_non_finite(weight.type, file_rows.data(), row_count * blocks); bad >= 0) {
    return Error{ErrorCode::bad_input,
                 "row " + std::to_string(first_row + bad / blocks) + " holds a value that is not finite"};
  }
  fill_tiles(weight, first_row, row_count, file_rows.data());
  return {};
}

void CpuBackend::reserve(const Limits& limits) {
  const auto rows = static_cast<std::size_t>(limits.rows);
  normed_ = allocate(rows * static_cast<std::size_t>(limits.widest) * sizeof(float));
  quantized_ = allocate(static_cast<std::size_t>(QuantLayout::bytes(limits.rows, limits.widest)));
  spare_ = allocate(quantized_.size());
  places_.reserve(rows);
  // Strips: the widest phase has three weights, or a head of the whole vocabulary.
  strips_.reserve(static_cast<std::size_t>(std::max(limits.vocabulary, 8 * limits.widest)) / kTileRows + 8);
  slices_.reserve(rows);
}

// -- rows into tiles --

bool CpuBackend::wants_wide(std::int64_t rows, Weights weights) const {
  std::int64_t wide_from = 0;
  for (const PreparedWeight* weight : weights) {
    wide_from = std::max(wide_from, path_.wide.from_rows[static_cast<std::size_t>(weight->type)]);
  }
  return wide_from > 0 && rows >= wide_from;
}

// `rows` rows as evenly as they go into tiles of at most path_.tile_rows: 16 are 6 + 5 + 5, not 6 + 6 + 4.
void CpuBackend::plan_tiles(std::int64_t rows, Weights weights) {
  ready_for_ = nullptr;
  wide_ = wants_wide(rows, weights);
  tile_parts_ = wide_ ? 4 : 1;
  places_.clear();
  const std::int64_t most = wide_ ? path_.wide.tile_rows : path_.tile_rows, tiles = (rows + most - 1) / most;
  for (std::int64_t i = 0, first = 0; i < tiles; ++i) {
    const std::int64_t size = rows / tiles + (i < rows % tiles ? 1 : 0);
    places_.push_back({first, static_cast<int>(size)});
    first += size;
  }
}

// The rows of a tile share cache lines, so one thread takes all of them. (A row each: twice the time of the whole phase
// where the threads have separate last-level caches.) Of a wide tile it takes a quarter, 8 rows of 32, or else most
// threads would have nothing to do: the q of 8 rows are whole lines, only the scales are shared.
CpuBackend::TilePart CpuBackend::tile_part(std::int64_t i) const {
  const TilePlace& place = places_[static_cast<std::size_t>(i / tile_parts_)];
  const int part = static_cast<int>(i % tile_parts_);
  return {place, place.rows * part / tile_parts_, place.rows * (part + 1) / tile_parts_};
}

void CpuBackend::quantize_part(const TilePart& part, std::int64_t from, std::int64_t cols, bool* finite) {
  const TilePlace& place = part.place;
  std::byte* to =
      quantized_.data() + QuantLayout::bytes(place.first, rows_.cols) + QuantLayout::bytes(place.rows, from);
  for (int m = part.begin; m < part.end; ++m) {
    const float* x = rows_.floats + (place.first + m) * rows_.cols + from;
    finite[m] = path_.quantize(x, cols, to, place.rows, m) && finite[m];
  }
}

namespace {

// Parts of one row may be found faulty by different threads.
void mark(std::span<std::uint8_t> faulty, std::int64_t row) {
  std::atomic_ref(faulty[static_cast<std::size_t>(row)]).store(1, std::memory_order_relaxed);
}

}  // namespace

void CpuBackend::norm_rows(const float* h, const NormWeight& norm, std::span<const std::int32_t> pick,
                           std::int64_t rows, Weights weights, std::span<std::uint8_t> faulty) {
  const auto cols = static_cast<std::int64_t>(norm.weight.size());
  const bool quantized =
      std::any_of(weights.begin(), weights.end(), [](auto* weight) { return is_quantized(*weight); });
  float* normed = reinterpret_cast<float*>(normed_.data());
  rows_ = {normed, rows, cols};
  plan_tiles(rows, weights);
  pool_.run(part_count(), ThreadPool::kShrinking, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TilePart part = tile_part(i);
      const auto source = [&](std::int64_t row) { return pick.empty() ? row : pick[static_cast<std::size_t>(row)]; };
      bool finite[kMaxTileRows];
      for (int m = part.begin; m < part.end; ++m) {
        const std::int64_t row = part.place.first + m;
        finite[m] = path_.rms_norm(h + source(row) * cols, norm.weight.data(), cols, norm.epsilon, normed + row * cols);
      }
      if (quantized) quantize_part(part, 0, cols, finite);
      for (int m = part.begin; m < part.end; ++m) {
        if (!finite[m]) mark(faulty, source(part.place.first + m));
      }
    }
  });
}

void CpuBackend::take_rows(const float* x, std::int64_t rows, const PreparedWeight& weight,
                           std::span<std::uint8_t> faulty) {
  constexpr std::int64_t kPartCols = 512;  // of a wide row, so that a few rows keep several threads busy
  const std::int64_t cols = weight.cols, widths = (cols + kPartCols - 1) / kPartCols;
  const bool quantized = is_quantized(weight);
  rows_ = {x, rows, cols};
  plan_tiles(rows, {&weight});
  pool_.run(part_count() * widths, ThreadPool::kShrinking, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TilePart part = tile_part(i / widths);
      const std::int64_t from = i % widths * kPartCols, width = std::min(kPartCols, cols - from);
      bool finite[kMaxTileRows];
      for (int m = part.begin; m < part.end; ++m) {
        finite[m] = quantized || path_.all_finite(x + (part.place.first + m) * cols + from, width);
      }
      if (quantized) quantize_part(part, from, width, finite);
      for (int m = part.begin; m < part.end; ++m) {
        if (!finite[m]) mark(faulty, part.place.first + m);
      }
    }
  });
}

void CpuBackend::quantize_results(const TilePlace& place, std::int64_t column, std::int64_t cols, const float* results,
                                  std::span<std::uint8_t> faulty) {
  constexpr std::int64_t kWidth = 2 * kTileRows;
  std::byte* to = spare_.data() + QuantLayout::bytes(place.first, cols) + QuantLayout::bytes(place.rows, column);
  for (int m = 0; m < place.rows; ++m) {
    if (!path_.quantize(results + m * kWidth, kWidth, to, place.rows, m)) mark(faulty, place.first + m);
  }
}

// The activations of a row tile for a strip of weight tiles of `stride` bytes; meanwhile the next strip is fetched.
ActTile CpuBackend::act_tile(const TilePlace& place, std::size_t stride) const {
  return {.rows = place.rows,
          .quantized = quantized_.data() + QuantLayout::bytes(place.first, rows_.cols),
          .floats = rows_.floats + place.first * rows_.cols,
          .cols = rows_.cols,
          .ahead = 2 * static_cast<std::int64_t>(stride),
          .parts = static_cast<int>(places_.size()),
          .part = static_cast<int>(&place - places_.data())};
}

// -- matmul phases --

void CpuBackend::add_strips(const PreparedWeight& weight, float* out) {
  const std::int64_t tiles = (weight.rows + kTileRows - 1) / kTileRows;
  for (std::int64_t tile = 0; tile < tiles; tile += 2) {
    strips_.push_back({&weight, tile, tile + 1 < tiles ? 2 : 1, out});
  }
}

template <class Done>
void CpuBackend::for_strips(Done&& done) {
  const auto units = static_cast<std::int64_t>(strips_.size());
  pool_.run(units, ThreadPool::kShrinking, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float results[kMaxTileRows * 2 * kTileRows];
    for (std::int64_t i = begin; i < end; ++i) {
      const Strip& strip = strips_[static_cast<std::size_t>(i)];
      const PreparedWeight& weight = *strip.weight;
      const std::size_t stride = tile_bytes(weight.type, weight.cols);
      const std::byte* tile = weight.data + static_cast<std::size_t>(strip.tile) * stride;
      for (const TilePlace& place : places_) {
        matmul(weight.type)(tile, stride, strip.tiles, act_tile(place, stride), results);
        done(strip, place, results);
      }
    }
  });
}

namespace {

// Calls put(row, column, value) for the results that belong to the matrix (the last tile may reach past it).
template <class Put>
void each_result(std::int64_t outputs, std::int64_t first_column, int tiles, std::int64_t first_row, int rows,
                 const float* results, Put&& put) {
  const std::int64_t width = std::min<std::int64_t>(tiles * kTileRows, outputs - first_column);
  for (int m = 0; m < rows; ++m) {
    put(first_row + m, first_column, results + m * tiles * kTileRows, width);
  }
}

}  // namespace

void CpuBackend::qkv(const QkvArgs& args, const BatchView& batch) {
  norm_rows(args.h, args.norm, {}, batch.rows(), {&args.wq, &args.wk, &args.wv}, batch.faulty);
  strips_.clear();
  add_strips(args.wq, args.q);
  add_strips(args.wk, args.k);
  add_strips(args.wv, args.v);
  for_strips([](const Strip& strip, const TilePlace& place, const float* results) {
    const std::int64_t outputs = strip.weight->rows;
    each_result(outputs, strip.tile * kTileRows, strip.tiles, place.first, place.rows, results,
                [&](std::int64_t row, std::int64_t column, const float* values, std::int64_t width) {
                  std::copy_n(values, width, strip.out + row * outputs + column);
                });
  });
}

void CpuBackend::matmul_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) {
  if (ready_for_ != &w) take_rows(x, batch.rows(), w, batch.faulty);
  ready_for_ = nullptr;
  strips_.clear();
  add_strips(w, h);
  for_strips([&](const Strip& strip, const TilePlace& place, const float* results) {
    each_result(w.rows, strip.tile * kTileRows, strip.tiles, place.first, place.rows, results,
                [&](std::int64_t row, std::int64_t column, const float* values, std::int64_t width) {
                  float* sum = h + row * w.rows + column;
                  for (std::int64_t i = 0; i < width; ++i) sum[i] += values[i];
                });
  });
}

void CpuBackend::project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) {
  matmul_add(h, x, w, batch);
}

void CpuBackend::down_add(float* h, const float* act, const PreparedWeight& w, const BatchView& batch) {
  matmul_add(h, act, w, batch);
}

// The gate strip's thread computes the up strip of the same columns too, so that SwiGLU is its epilogue; and the
// quantization for the next weight, whose block of 32 inputs is the strip's width.
void CpuBackend::gate_up(const GateUpArgs& args, const BatchView& batch) {
  norm_rows(args.h, args.norm, {}, batch.rows(), {&args.wgate, &args.wup}, batch.faulty);
  const bool ahead = args.next != nullptr && is_quantized(*args.next) && wants_wide(batch.rows(), {args.next}) == wide_;
  strips_.clear();
  add_strips(args.wgate, args.act);
  const std::size_t up_stride = tile_bytes(args.wup.type, args.wup.cols);
  for_strips([&](const Strip& strip, const TilePlace& place, float* results) {
    alignas(64) float up[kMaxTileRows * 2 * kTileRows];
    const std::byte* tile = args.wup.data + static_cast<std::size_t>(strip.tile) * up_stride;
    matmul(args.wup.type)(tile, up_stride, strip.tiles, act_tile(place, up_stride), up);
    path_.swiglu(results, up, results, std::int64_t{place.rows} * strip.tiles * kTileRows);
    if (ahead) return quantize_results(place, strip.tile * kTileRows, args.next->cols, results, batch.faulty);
    each_result(args.wgate.rows, strip.tile * kTileRows, strip.tiles, place.first, place.rows, results,
                [&](std::int64_t row, std::int64_t column, const float* values, std::int64_t width) {
                  std::copy_n(values, width, args.act + row * args.wgate.rows + column);
                });
  });
  if (!ahead) return;
  std::swap(quantized_, spare_);
  rows_ = {nullptr, batch.rows(), args.next->cols};
  ready_for_ = args.next;
}

void CpuBackend::head(const HeadArgs& args, const BatchView& batch) {
  norm_rows(args.h, args.norm, args.rows, static_cast<std::int64_t>(args.rows.size()), {&args.w}, batch.faulty);
  strips_.clear();
  add_strips(args.w, args.logits);
  for_strips([&](const Strip& strip, const TilePlace& place, const float* results) {
    each_result(args.w.rows, strip.tile * kTileRows, strip.tiles, place.first, place.rows, results,
                [&](std::int64_t row, std::int64_t column, const float* values, std::int64_t width) {
                  std::copy_n(values, width, args.logits + row * args.w.rows + column);
                });
  });
}

void CpuBackend::embed(float* h, const PreparedWeight& table, const BatchView& batch) {
  pool_.run(batch.rows(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      read_row(table, batch.tokens[static_cast<std::size_t>(r)], h + r * table.cols);
    }
  });
}

// -- sampling --

void CpuBackend::top_candidates(std::span<const TopRequest> requests) {
  pool_.run(static_cast<std::int64_t>(requests.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TopRequest& request = requests[static_cast<std::size_t>(i)];
      const bool whole = request.count == request.vocabulary;
      const std::int64_t best = request.count == 1 || whole ? path_.argmax(request.logits, request.vocabulary) : -1;
      if (best < 0 || (whole && !std::isfinite(request.logits[best]))) {
        troupe::top_candidates(request);
      } else if (whole) {
        sort_vocabulary(request, request.logits[best]);
      } else {
        *request.out = {request.logits[best], static_cast<std::int32_t>(best)};
      }
    }
  });
}

void CpuBackend::log_sum_exp(std::span<const LogSumRequest> requests) {
  pool_.run(static_cast<std::int64_t>(requests.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const LogSumRequest& request = requests[static_cast<std::size_t>(i)];
      *request.out = path_.log_sum_exp(request.logits, request.vocabulary);
    }
  });
}

}  // namespace troupe::cpu
