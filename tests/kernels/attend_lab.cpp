#include "tests/kernels/attend_lab.h"

namespace troupe::test {
namespace {

constexpr int kPositions = 700;

// All operands of a case; the same from the same case.
struct Operands {
  explicit Operands(const AttendCase& one)
      : layout(one.layout),
        random(static_cast<std::uint64_t>(one.layout.head_dim * 100 + one.group)),
        pages(one.layout),
        heads(one.layout.kv_heads * one.group) {
    for (const Step& step : one.steps) pages.add(step.position, step.rows, random);
    q = random.bells(rows() * q_width(), 2.0f);
    k = random.bells(rows() * kv_width());
    v = random.bells(rows() * kv_width());
    if (one.change) one.change(k, v);
    out = PoisonedRows(rows() * q_width());
    table =
        RopeTable::create({.dim = one.rope_dim == 0 ? layout.head_dim : one.rope_dim, .pairs = one.pairs}, kPositions);
    tokens.resize(static_cast<std::size_t>(rows()));
    faulty.resize(tokens.size());
    sequences = pages.sequences();
  }

  std::int64_t rows() const { return pages.rows(); }
  std::int64_t q_width() const { return std::int64_t{heads} * layout.head_dim; }
  std::int64_t kv_width() const { return std::int64_t{layout.kv_heads} * layout.head_dim; }

  AttendArgs args(std::int64_t first_row) {
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layout.head_dim)));
    return {out.data() + first_row * q_width(),
            q.data() + first_row * q_width(),
            k.data() + first_row * kv_width(),
            v.data() + first_row * kv_width(),
            table,
            layout,
            layout.layers - 1,
            heads,
            scale};
  }

  AttendResult result() {
    AttendResult all{{{out.values().begin(), out.values().end()}, faulty, out.intact()}, pages.bytes()};
    all.output.values.insert(all.output.values.end(), q.begin(), q.end());
    all.output.values.insert(all.output.values.end(), k.begin(), k.end());
    return all;
  }

  KvLayout layout;
  Random random;
  KvPages pages;
  int heads;
  std::vector<float> q, k, v;
  PoisonedRows out{0};
  RopeTable table;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> faulty;
  std::vector<SequenceView> sequences;
};

}  // namespace

AttendResult run_attend(Backend& backend, const AttendCase& one) {
  Operands x(one);
  backend.attend(x.args(0), {x.tokens, x.pages.positions(), x.sequences, x.faulty});
  return x.result();
}

AttendResult run_attend_alone(Backend& backend, const AttendCase& one) {
  Operands x(one);
  for (const SequenceView& sequence : x.sequences) {
    for (std::int32_t i = 0; i < sequence.rows; ++i) {
      const std::int32_t row = sequence.first_row + i, position = sequence.position + i;
      const SequenceView alone{sequence.pages, 0, 1, position};
      const auto at = static_cast<std::size_t>(row);
      backend.attend(
          x.args(row),
          {std::span(x.tokens).subspan(at, 1), {&position, 1}, {&alone, 1}, std::span(x.faulty).subspan(at, 1)});
    }
  }
  return x.result();
}

}  // namespace troupe::test
