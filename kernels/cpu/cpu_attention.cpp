// The attention phase of the CPU backend: keys and values into the pages, then work items of one KV head of some rows.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace troupe::cpu {

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
    pool_.run(static_cast<std::int64_t>(batch.sequences.size()) * heads, [&](std::int64_t i) {
      store_rows(args, batch.sequences[static_cast<std::size_t>(i / heads)], static_cast<int>(i % heads));
    });
  }
  pool_.run(static_cast<std::int64_t>(slices_.size()) * heads, [&](std::int64_t i) {
    const AttendSlice& slice = slices_[static_cast<std::size_t>(i / heads)];
    const int kv_head = static_cast<int>(i % heads);
    if (single_rows) store_rows(args, *slice.sequence, kv_head);
    attend_slice(args, slice, kv_head);
  });
}

}  // namespace troupe::cpu
