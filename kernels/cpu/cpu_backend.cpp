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
  std::int64_t wide_from = 0, outputs = 0, inputs = 0;
  for (const PreparedWeight* weight : weights) {
    wide_from = std::max(wide_from, path_.wide.from_rows[static_cast<std::size_t>(weight->type)]);
    outputs += weight->rows;
    inputs = weight->cols;
  }
  if (std::min(outputs, inputs) < Path::kSmall) wide_from *= path_.wide.small_times;
  return wide_from > 0 && rows >= wide_from;
}

// The rows of rows_ as evenly as they go into tiles of at most path_.tile_rows: 16 are 6 + 5 + 5, not 6 + 6 + 4.
//
// The rows of a tile share cache lines, which take long from core to core, so what several threads make ready of one
// tile are columns of it. They do where there are few tiles and a part is still worth a region, which costs about a
// microsecond: 4096 inputs take as long.
void CpuBackend::plan_tiles(Weights weights) {
  constexpr std::int64_t kPartInputs = 4096, kColumns = 64;
  const std::int64_t rows = rows_.count;
  ready_for_ = nullptr;
  wide_ = wants_wide(rows, weights);
  places_.clear();
  const std::int64_t most = wide_ ? path_.wide.tile_rows : path_.tile_rows, tiles = (rows + most - 1) / most;
  for (std::int64_t i = 0, first = 0; i < tiles; ++i) {
    const std::int64_t size = rows / tiles + (i < rows % tiles ? 1 : 0);
    places_.push_back({first, static_cast<int>(size)});
    first += size;
  }
  if (rows == 0) return;
  const std::int64_t columns = (rows_.cols + kColumns - 1) / kColumns;
  const std::int64_t worth = std::min(2 * pool_.threads() / tiles, rows * rows_.cols / (tiles * kPartInputs));
  const std::int64_t parts = std::clamp<std::int64_t>(worth, 1, columns);
  part_cols_ = (columns + parts - 1) / parts * kColumns;
  tile_parts_ = (rows_.cols + part_cols_ - 1) / part_cols_;
}

CpuBackend::TilePart CpuBackend::tile_part(std::int64_t i) const {
  const std::int64_t from = i % tile_parts_ * part_cols_;
  return {places_[static_cast<std::size_t>(i / tile_parts_)], from, std::min(part_cols_, rows_.cols - from)};
}

void CpuBackend::quantize_part(const TilePart& part, bool* finite) {
  const TilePlace& place = part.place;
  path_.quantize({.x = rows_.floats + place.first * rows_.cols + part.from,
                  .stride = rows_.cols,
                  .blocks = part.cols / 32,
                  .tile = quantized_.data() + place.quantized_at(rows_.cols, part.from),
                  .rows = place.rows,
                  .finite = finite});
}

namespace {

// The row of the batch that stands in place `i` of those picked; nothing picked: all.
std::int64_t picked(std::span<const std::int32_t> pick, std::int64_t i) {
  return pick.empty() ? i : pick[static_cast<std::size_t>(i)];
}

// Calls make(finite) for rows from `first` on, as picked, and marks those whose `finite` it made false. Different
// threads may find parts of one row faulty.
template <class Make>
void mark_faulty(std::span<std::uint8_t> faulty, std::span<const std::int32_t> pick, std::int64_t first, int rows,
                 Make&& make) {
  bool finite[kMaxTileRows];
  std::fill_n(finite, rows, true);
  make(finite);
  for (int m = 0; m < rows; ++m) {
    if (finite[m]) continue;
    std::atomic_ref(faulty[static_cast<std::size_t>(picked(pick, first + m))]).store(1, std::memory_order_relaxed);
  }
}

bool any_quantized(std::initializer_list<const PreparedWeight*> weights) {
  return std::any_of(weights.begin(), weights.end(), [](auto* weight) { return is_quantized(*weight); });
}

}  // namespace

template <class Make>
void CpuBackend::for_parts(std::span<const std::int32_t> pick, std::span<std::uint8_t> faulty, Make&& make) {
  pool_.run(part_count(), [&](std::int64_t i) {
    const TilePart part = tile_part(i);
    mark_faulty(faulty, pick, part.place.first, part.place.rows, [&](bool* finite) { make(part, finite); });
  });
}

// Every part of a tile finds the factors of all its rows for itself: a row is read faster than a region begins.
void CpuBackend::norm_rows(const float* h, const NormWeight& norm, std::span<const std::int32_t> pick,
                           std::int64_t rows, Weights weights, std::span<std::uint8_t> faulty) {
  const auto cols = static_cast<std::int64_t>(norm.weight.size());
  const bool quantized = any_quantized(weights);
  float* normed = reinterpret_cast<float*>(normed_.data());
  rows_ = {normed, rows, cols};
  plan_tiles(weights);
  for_parts(pick, faulty, [&](const TilePart& part, bool* finite) {
    for (int m = 0; m < part.place.rows; ++m) {
      const float* x = h + picked(pick, part.place.first + m) * cols;
      float* y = normed + (part.place.first + m) * cols + part.from;
      const float factor = path_.rms_factor(x, cols, norm.epsilon);
      finite[m] = !std::isnan(factor);
      if (finite[m]) {
        path_.rms_scale(x + part.from, norm.weight.data() + part.from, part.cols, factor, y);
      } else {
        std::fill_n(y, part.cols, 0.0f);
      }
    }
    if (quantized) quantize_part(part, finite);
  });
}

void CpuBackend::take_rows(const float* x, std::int64_t rows, const PreparedWeight& weight,
                           std::span<std::uint8_t> faulty) {
  rows_ = {x, rows, weight.cols};
  plan_tiles({&weight});
  for_parts({}, faulty, [&](const TilePart& part, bool* finite) {
    if (is_quantized(weight)) return quantize_part(part, finite);
    for (int m = 0; m < part.place.rows; ++m) {
      finite[m] = path_.all_finite(x + (part.place.first + m) * weight.cols + part.from, part.cols);
    }
  });
}

void CpuBackend::quantize_results(const TilePlace& place, std::int64_t column, std::int64_t cols, const float* results,
                                  std::span<std::uint8_t> faulty) {
  constexpr std::int64_t kWidth = 2 * kTileRows;
  mark_faulty(faulty, {}, place.first, place.rows, [&](bool* finite) {
    path_.quantize({.x = results,
                    .stride = kWidth,
                    .blocks = 1,
                    .tile = spare_.data() + place.quantized_at(cols, column),
                    .rows = place.rows,
                    .finite = finite});
  });
}

// The activations of a row tile for a strip of weight tiles of `stride` bytes; meanwhile the next strip is fetched.
ActTile CpuBackend::act_tile(const TilePlace& place, std::size_t stride) const {
  return {.rows = place.rows,
          .quantized = quantized_.data() + place.quantized_at(rows_.cols, 0),
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
  pool_.run(static_cast<std::int64_t>(strips_.size()), [&](std::int64_t i) {
    alignas(64) float results[kMaxTileRows * 2 * kTileRows];
    const Strip& strip = strips_[static_cast<std::size_t>(i)];
    const PreparedWeight& weight = *strip.weight;
    const std::size_t stride = tile_bytes(weight.type, weight.cols);
    const std::byte* tile = weight.data + static_cast<std::size_t>(strip.tile) * stride;
    for (const TilePlace& place : places_) {
      matmul(weight.type)(tile, stride, strip.tiles, act_tile(place, stride), results);
      done(strip, place, results);
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
  pool_.run(batch.rows(),
            [&](std::int64_t r) { read_row(table, batch.tokens[static_cast<std::size_t>(r)], h + r * table.cols); });
}

// -- sampling --

void CpuBackend::top_candidates(std::span<const TopRequest> requests) {
  pool_.run(static_cast<std::int64_t>(requests.size()), [&](std::int64_t i) {
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
  });
}

void CpuBackend::log_sum_exp(std::span<const LogSumRequest> requests) {
  pool_.run(static_cast<std::int64_t>(requests.size()), [&](std::int64_t i) {
    const LogSumRequest& request = requests[static_cast<std::size_t>(i)];
    *request.out = path_.log_sum_exp(request.logits, request.vocabulary);
  });
}

}  // namespace troupe::cpu
