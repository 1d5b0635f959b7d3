#include "tests/kernels/backend_lab.h"

#include <algorithm>
#include <bit>

#include "tests/support/emulated_amx.h"

namespace troupe::test {
namespace {

constexpr float kEpsilon = 1e-5f;

void append(Output& output, PoisonedRows& rows) {
  output.values.insert(output.values.end(), rows.values().begin(), rows.values().end());
  output.intact = output.intact && rows.intact();
}

// The rows that a product is added to: the same for every backend. Every second one is 0, so that a tiny product shows.
void fill_residual(float* h, std::int64_t count) {
  Random random(77);
  for (std::int64_t i = 0; i < count; ++i) h[i] = i % 2 == 0 ? 0.0f : random.bell();
}

using AddPhase = void (Backend::*)(float*, const float*, const PreparedWeight&, const BatchView&);

Output run_add(AddPhase phase, Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& w) {
  const TestWeight weight(backend, w);
  RowLaunch launch(rows);
  PoisonedRows h(rows * w.rows);
  fill_residual(h.data(), rows * w.rows);
  (backend.*phase)(h.data(), in.h.data(), weight.weight, launch.view());
  Output output{{}, launch.faulty};
  append(output, h);
  return output;
}

}  // namespace

std::vector<DType> all_formats() {
  std::vector<DType> types;
  for (int i = 0; i < kFormats; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

std::vector<std::int64_t> ragged_cols(DType type) {
  if (traits(type).block == 256) return {256, 512, 768};
  return {32, 64, 96, 128, 160, 576};
}

Lab::Lab() : reference_(make_reference_backend()) {
  reference_->reserve(kLabLimits);
  for (Isa isa : kIsas) {
    if (!supported(isa)) continue;
    for (int threads : {1, 2, 3}) add(name(isa), threads, make_cpu_backend(isa, threads));
  }
  if (supported(Isa::avx512_vnni)) {
    add("emulated amx", 2, make_emulated_amx_backend(WideFrom::as_on_hardware, 2));
    for (int threads : {1, 3}) {
      add("emulated amx from one row", threads, make_emulated_amx_backend(WideFrom::one_row, threads));
    }
  }
}

void Lab::add(const std::string& path, int threads, std::unique_ptr<Backend> backend) {
  backend->reserve(kLabLimits);
  paths_.push_back({path + ", " + std::to_string(threads) + " threads", std::move(backend)});
}

Lab& Lab::get() {
  static Lab lab;
  return lab;
}

RowLaunch::RowLaunch(std::int64_t rows, std::int64_t vocabulary)
    : tokens(static_cast<std::size_t>(rows)), faulty(static_cast<std::size_t>(rows)), positions_(tokens.size()) {
  Random random(5);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(vocabulary));
}

RowInputs random_inputs(std::int64_t rows, std::int64_t cols, Random& random) {
  RowInputs in{random.bells(rows * cols), random.bells(cols, 0.1f), rows, cols};
  for (float& weight : in.norm) weight += 1.0f;
  return in;
}

Output run_qkv(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& wq, const FileMatrix& wk,
               const FileMatrix& wv) {
  const TestWeight q_weight(backend, wq), k_weight(backend, wk), v_weight(backend, wv);
  RowLaunch launch(rows);
  PoisonedRows q(rows * wq.rows), k(rows * wk.rows), v(rows * wv.rows);
  backend.qkv({q.data(),
               k.data(),
               v.data(),
               in.h.data(),
               {in.norm, kEpsilon},
               q_weight.weight,
               k_weight.weight,
               v_weight.weight},
              launch.view());
  Output output{{}, launch.faulty};
  append(output, q);
  append(output, k);
  append(output, v);
  return output;
}

Output run_gate_up(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& gate,
                   const FileMatrix& up) {
  const TestWeight gate_weight(backend, gate), up_weight(backend, up);
  RowLaunch launch(rows);
  PoisonedRows act(rows * gate.rows);
  backend.gate_up({act.data(), in.h.data(), {in.norm, kEpsilon}, gate_weight.weight, up_weight.weight}, launch.view());
  Output output{{}, launch.faulty};
  append(output, act);
  return output;
}

Output run_feed_forward(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& gate,
                        const FileMatrix& down, bool announced) {
  const TestWeight gate_weight(backend, gate), down_weight(backend, down);
  RowLaunch launch(rows);
  PoisonedRows act(rows * gate.rows), h(rows * down.rows);
  fill_residual(h.data(), rows * down.rows);
  backend.gate_up({act.data(),
                   in.h.data(),
                   {in.norm, kEpsilon},
                   gate_weight.weight,
                   gate_weight.weight,
                   announced ? &down_weight.weight : nullptr},
                  launch.view());
  backend.down_add(h.data(), act.data(), down_weight.weight, launch.view());
  Output output{{}, launch.faulty, act.intact()};
  append(output, h);
  return output;
}

Output run_project_add(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& w) {
  return run_add(&Backend::project_add, backend, in, rows, w);
}

Output run_down_add(Backend& backend, const RowInputs& in, std::int64_t rows, const FileMatrix& w) {
  return run_add(&Backend::down_add, backend, in, rows, w);
}

Output run_head(Backend& backend, const RowInputs& in, std::int64_t rows, std::span<const std::int32_t> wanted,
                const FileMatrix& w) {
  const TestWeight weight(backend, w);
  RowLaunch launch(rows);
  PoisonedRows logits(static_cast<std::int64_t>(wanted.size()) * w.rows);
  backend.head({logits.data(), in.h.data(), wanted, {in.norm, kEpsilon}, weight.weight}, launch.view());
  Output output{{}, launch.faulty};
  append(output, logits);
  return output;
}

Output run_embed(Backend& backend, const FileMatrix& table, std::span<const std::int32_t> tokens) {
  const TestWeight weight(backend, table);
  RowLaunch launch(static_cast<std::int64_t>(tokens.size()));
  std::copy(tokens.begin(), tokens.end(), launch.tokens.begin());
  PoisonedRows h(static_cast<std::int64_t>(tokens.size()) * table.cols);
  backend.embed(h.data(), weight.weight, launch.view());
  Output output{{}, launch.faulty};
  append(output, h);
  return output;
}

Output first_rows(const Output& all, std::int64_t part, std::int64_t width) {
  Output output{{all.values.begin(), all.values.begin() + part * width},
                {all.faulty.begin(), all.faulty.begin() + part}};
  output.intact = all.intact;
  return output;
}

std::string difference(const Output& expected, const Output& actual) {
  if (!expected.intact || !actual.intact) return "wrote outside of its output";
  if (expected.faulty != actual.faulty) {
    const auto at = std::mismatch(expected.faulty.begin(), expected.faulty.end(), actual.faulty.begin()).first;
    return "other rows are marked faulty, first row " + std::to_string(at - expected.faulty.begin());
  }
  const std::int64_t at = first_difference(expected.values, actual.values);
  if (at < 0) return {};
  const auto i = static_cast<std::size_t>(at);
  if (i >= expected.values.size() || i >= actual.values.size()) return "another number of values";
  return "value " + std::to_string(at) + " of " + std::to_string(expected.values.size()) + " is " +
         std::to_string(actual.values[i]) + ", expected " + std::to_string(expected.values[i]);
}

std::uint64_t hash(const Output& output) {
  std::uint64_t value = 1469598103934665603ull;
  const auto add = [&value](std::uint32_t word) { value = (value ^ word) * 1099511628211ull; };
  for (float x : output.values) add(x != x ? 0x7fc00000u : std::bit_cast<std::uint32_t>(x));
  for (std::uint8_t flag : output.faulty) add(flag);
  return value;
}

}  // namespace troupe::test
