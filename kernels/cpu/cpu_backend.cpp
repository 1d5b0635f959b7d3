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

std::string CpuBackend::describe() const {
  return std::string("cpu ") + path_.name + ", " + std::to_string(pool_.threads()) +
         (pool_.threads() == 1 ? " thread" : " threads");
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
  places_.reserve(rows);
  // Strips: the widest phase has three weights, or a head of the whole vocabulary.
  strips_.reserve(static_cast<std::size_t>(std::max(limits.vocabulary, 8 * limits.widest)) / kTileRows + 8);
  slices_.reserve(rows);
}

// -- rows into register tiles --

// `rows` rows as evenly as they go into tiles of at most path_.tile_rows: 16 are 6 + 5 + 5, not 6 + 6 + 4.
void CpuBackend::plan_tiles(std::int64_t rows) {
  places_.clear();
  const std::int64_t tiles = (rows + path_.tile_rows - 1) / path_.tile_rows;
  for (std::int64_t i = 0, first = 0; i < tiles; ++i) {
    const std::int64_t size = rows / tiles + (i < rows % tiles ? 1 : 0);
    places_.push_back({first, static_cast<int>(size)});
    first += size;
  }
}

// The rows of a tile share cache lines, so one thread takes all of them. (A row each: twice the time of the whole phase
// where the threads have separate last-level caches.)
void CpuBackend::quantize_part(const TilePlace& place, std::int64_t from, std::int64_t cols, bool* finite) {
  std::byte* part =
      quantized_.data() + QuantLayout::bytes(place.first, rows_.cols) + QuantLayout::bytes(place.rows, from);
  for (int m = 0; m < place.rows; ++m) {
    const float* x = rows_.floats + (place.first + m) * rows_.cols + from;
    finite[m] = path_.quantize(x, cols, part, place.rows, m) && finite[m];
  }
}

namespace {

// Parts of one row may be found faulty by different threads.
void mark(std::span<std::uint8_t> faulty, std::int64_t row) {
  std::atomic_ref(faulty[static_cast<std::size_t>(row)]).store(1, std::memory_order_relaxed);
}

}  // namespace

void CpuBackend::norm_rows(const float* h, const NormWeight& norm, std::span<const std::int32_t> pick,
                           std::int64_t rows, bool quantized, std::span<std::uint8_t> faulty) {
  const auto cols = static_cast<std::int64_t>(norm.weight.size());
  float* normed = reinterpret_cast<float*>(normed_.data());
  rows_ = {normed, rows, cols};
  plan_tiles(rows);
  pool_.run(tile_count(), ThreadPool::kShrinking, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const TilePlace& place = places_[static_cast<std::size_t>(tile)];
      const auto source = [&](std::int64_t row) { return pick.empty() ? row : pick[static_cast<std::size_t>(row)]; };
      bool finite[kMaxTileRows];
      for (int m = 0; m < place.rows; ++m) {
        const std::int64_t row = place.first + m;
        finite[m] = path_.rms_norm(h + source(row) * cols, norm.weight.data(), cols, norm.epsilon, normed + row * cols);
      }
      if (quantized) quantize_part(place, 0, cols, finite);
      for (int m = 0; m < place.rows; ++m) {
        if (!finite[m]) mark(faulty, source(place.first + m));
      }
    }
  });
}

void CpuBackend::take_rows(const float* x, std::int64_t rows, std::int64_t cols, bool quantized,
                           std::span<std::uint8_t> faulty) {
  constexpr std::int64_t kPartCols = 512;  // of a wide row, so that a few rows keep several threads busy
  rows_ = {x, rows, cols};
  plan_tiles(rows);
  const std::int64_t parts = (cols + kPartCols - 1) / kPartCols;
  pool_.run(tile_count() * parts, ThreadPool::kShrinking, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TilePlace& place = places_[static_cast<std::size_t>(i / parts)];
      const std::int64_t from = i % parts * kPartCols, width = std::min(kPartCols, cols - from);
      bool finite[kMaxTileRows];
      for (int m = 0; m < place.rows; ++m) {
        finite[m] = quantized || path_.all_finite(x + (place.first + m) * cols + from, width);
      }
      if (quantized) quantize_part(place, from, width, finite);
      for (int m = 0; m < place.rows; ++m) {
        if (!finite[m]) mark(faulty, place.first + m);
      }
    }
  });
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
        path_.matmul[static_cast<std::size_t>(weight.type)](tile, stride, strip.tiles, act_tile(place, stride),
                                                            results);
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
  const bool quantized = is_quantized(args.wq) || is_quantized(args.wk) || is_quantized(args.wv);
  norm_rows(args.h, args.norm, {}, batch.rows(), quantized, batch.faulty);
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
  take_rows(x, batch.rows(), w.cols, is_quantized(w), batch.faulty);
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

// The gate strip's thread computes the up strip of the same columns too, so that SwiGLU is its epilogue.
void CpuBackend::gate_up(const GateUpArgs& args, const BatchView& batch) {
  norm_rows(args.h, args.norm, {}, batch.rows(), is_quantized(args.wgate) || is_quantized(args.wup), batch.faulty);
  strips_.clear();
  add_strips(args.wgate, args.act);
  const std::size_t up_stride = tile_bytes(args.wup.type, args.wup.cols);
  for_strips([&](const Strip& strip, const TilePlace& place, float* results) {
    alignas(64) float up[kMaxTileRows * 2 * kTileRows];
    const std::byte* tile = args.wup.data + static_cast<std::size_t>(strip.tile) * up_stride;
    path_.matmul[static_cast<std::size_t>(args.wup.type)](tile, up_stride, strip.tiles, act_tile(place, up_stride), up);
    path_.swiglu(results, up, results, std::int64_t{place.rows} * strip.tiles * kTileRows);
    each_result(args.wgate.rows, strip.tile * kTileRows, strip.tiles, place.first, place.rows, results,
                [&](std::int64_t row, std::int64_t column, const float* values, std::int64_t width) {
                  std::copy_n(values, width, args.act + row * args.wgate.rows + column);
                });
  });
}

void CpuBackend::head(const HeadArgs& args, const BatchView& batch) {
  norm_rows(args.h, args.norm, args.rows, static_cast<std::int64_t>(args.rows.size()), is_quantized(args.w),
            batch.faulty);
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

// -- attention --

void CpuBackend::store_rows(const AttendArgs& args, const SequenceView& sequence, int kv_head) {
  const KvLayout& layout = args.layout;
  const int dim = layout.head_dim, group = args.heads / layout.kv_heads, pairs = args.rope.dim / 2;
  const bool neighbours = args.rope.pairs == RopePairs::neighbours;
  for (std::int64_t i = 0; i < sequence.rows; ++i) {
    const std::int64_t row = sequence.first_row + i, position = sequence.position + i;
    const float* cos = args.rope.cos.data() + position * pairs;
    const float* sin = args.rope.sin.data() + position * pairs;
    for (int g = 0; g < group; ++g) {
      path_.rope(args.q + (row * args.heads + kv_head * group + g) * dim, cos, sin, pairs, neighbours);
    }
    float* k = args.k + (row * layout.kv_heads + kv_head) * dim;
    path_.rope(k, cos, sin, pairs, neighbours);
    std::byte* page = sequence.pages[position / KvLayout::kPageTokens];
    path_.store_kv(page + layout.k_offset(args.layer, kv_head), page + layout.v_offset(args.layer, kv_head),
                   layout.type, dim, static_cast<int>(position % KvLayout::kPageTokens), k,
                   args.v + (row * layout.kv_heads + kv_head) * dim);
  }
}

void CpuBackend::attend_slice(const AttendArgs& args, const AttendSlice& slice, int kv_head) {
  const KvLayout& layout = args.layout;
  const int group = args.heads / layout.kv_heads;
  const std::int64_t stride = std::int64_t{args.heads} * layout.head_dim;
  const std::int64_t at =
      (slice.sequence->first_row + slice.first_row) * stride + std::int64_t{kv_head} * group * layout.head_dim;
  AttendWork work;
  work.q = args.q + at;
  work.out = args.out + at;
  work.row_stride = stride;
  work.group = group;
  work.pages = slice.sequence->pages;
  work.k_offset = layout.k_offset(args.layer, kv_head);
  work.v_offset = layout.v_offset(args.layer, kv_head);
  work.type = layout.type;
  work.head_dim = layout.head_dim;
  work.scale = args.scale;
  work.position = slice.sequence->position + slice.first_row;
  work.rows = slice.rows;
  path_.attend(work);
}

// Slices of at most 16 rows, so that one long prompt keeps every thread busy; longest first, so that the last claim is
// short. Equal costs stay in memory order.
void CpuBackend::plan_attention(const BatchView& batch) {
  constexpr std::int64_t kSliceRows = 16;
  slices_.clear();
  for (const SequenceView& sequence : batch.sequences) {
    for (std::int64_t first = 0; first < sequence.rows; first += kSliceRows) {
      slices_.push_back({&sequence, first, std::min<std::int64_t>(kSliceRows, sequence.rows - first)});
    }
  }
  std::sort(slices_.begin(), slices_.end(), [](const AttendSlice& a, const AttendSlice& b) {
    return a.cost() != b.cost() ? a.cost() > b.cost() : a.sequence < b.sequence;
  });
}

void CpuBackend::attend(const AttendArgs& args, const BatchView& batch) {
  const std::int64_t heads = args.layout.kv_heads;
  plan_attention(batch);
  // All keys and values of a prompt stand before its first query row looks, as its rows see each other. Where every
  // sequence has one row, that row's own thread stores them, and one region is enough.
  const bool single_rows = static_cast<std::int64_t>(batch.sequences.size()) == batch.rows();
  if (!single_rows) {
    pool_.run(static_cast<std::int64_t>(batch.sequences.size()) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        store_rows(args, batch.sequences[static_cast<std::size_t>(i / heads)], static_cast<int>(i % heads));
      }
    });
  }
  pool_.run(static_cast<std::int64_t>(slices_.size()) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const AttendSlice& slice = slices_[static_cast<std::size_t>(i / heads)];
      const int kv_head = static_cast<int>(i % heads);
      if (single_rows) store_rows(args, *slice.sequence, kv_head);
      attend_slice(args, slice, kv_head);
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
