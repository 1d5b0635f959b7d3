// Extreme operands and non-finite values: the same bits and the same faulty rows on every path, neighbours untouched.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <xmmintrin.h>

#include "tests/kernels/backend_lab.h"

namespace troupe::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

class Extremes : public testing::TestWithParam<DType> {
 protected:
  template <class Visit>
  void for_all_backends(Visit&& visit) {
    visit(lab.reference(), std::string("reference"));
    for (NamedBackend& path : lab.paths()) visit(*path.backend, path.name);
  }

  DType type = GetParam();
  std::int64_t cols = ragged_cols(GetParam())[1];
  Lab& lab = Lab::get();
  Random random{500 + static_cast<std::uint64_t>(GetParam())};
};

template <class ValueOf>
void add_row(RowInputs& in, ValueOf&& value_of) {
  for (std::int64_t i = 0; i < in.cols; ++i) in.h.push_back(value_of(i));
  ++in.rows;
}

// Rows whose quantized form saturates, vanishes or stands on an edge of the contract.
RowInputs extreme_inputs(std::int64_t cols, Random& random) {
  const float edge = 0x1p-100f;
  const std::vector<float> constants{0.0f,
                                     -0.0f,
                                     1.0f,
                                     -1.0f,
                                     kDenormal,
                                     -kDenormal,
                                     0x1p-126f,
                                     edge,
                                     std::nextafter(edge, 0.0f),
                                     std::nextafter(edge, 1.0f),
                                     1e30f,
                                     -1e30f,
                                     kLargest,
                                     -kLargest};
  RowInputs in = random_inputs(0, cols, random);
  for (float c : constants) add_row(in, [&](std::int64_t) { return c; });
  for (float c : constants) add_row(in, [&](std::int64_t i) { return i % 2 == 0 ? c : -c; });
  add_row(in, [](std::int64_t i) { return i % 32 == 7 ? 1.0f : 1e-6f; });
  add_row(in, [](std::int64_t i) { return i % 32 == 31 ? -1.0f : 0.5f / 127.0f; });  // ties of rint
  add_row(in, [](std::int64_t i) { return static_cast<float>(i % 255 - 127) / 2.0f; });
  add_row(in, [](std::int64_t i) { return i < 32 ? kLargest : kDenormal; });
  for (int scale : {-149, -120, -101, -99, -60, 60, 100, 120}) {
    add_row(in, [&](std::int64_t) { return std::ldexp(random.bell(), scale); });
  }
  return in;
}

TEST_P(Extremes, all_bit_patterns_of_weights_times_extreme_rows) {
  const RowInputs in = extreme_inputs(cols, random);
  for (int round = 0; round < 3; ++round) {
    const FileMatrix w = wild_matrix(type, 47, cols, random), up = wild_matrix(type, 47, cols, random);
    const Output added = run_project_add(lab.reference(), in, in.rows, w);
    const Output gated = run_gate_up(lab.reference(), in, in.rows, w, up);
    for (NamedBackend& path : lab.paths()) {
      ASSERT_EQ(difference(added, run_project_add(*path.backend, in, in.rows, w)), "") << path.name;
      ASSERT_EQ(difference(gated, run_gate_up(*path.backend, in, in.rows, w, up)), "") << path.name;
    }
  }
}

// A matrix whose every byte is `byte`, but for scales that would not be finite.
FileMatrix constant_matrix(DType type, std::int64_t cols, int byte, Random& random) {
  FileMatrix w = wild_matrix(type, 18, cols, random);
  std::fill(w.bytes.begin(), w.bytes.end(), static_cast<std::byte>(byte));
  if (byte != 0xff && byte != 0x7f) return w;
  const std::size_t block = traits(type).bytes;
  for (std::size_t at = 0; at < w.bytes.size(); at += block) {
    for (std::size_t high_byte : {std::size_t{1}, std::size_t{3}, std::size_t{209}}) {
      if (high_byte < block) w.bytes[at + high_byte] = std::byte{0x3c};
    }
  }
  return w;
}

TEST_P(Extremes, rows_of_plus_and_minus_127_times_every_constant_byte) {
  RowInputs in = random_inputs(0, cols, random);
  for (int times = 0; times < 4; ++times) {  // 16 rows: enough for every path's kernels of many rows
    add_row(in, [](std::int64_t) { return 3.0f; });
    add_row(in, [](std::int64_t) { return -3.0f; });
    add_row(in, [](std::int64_t i) { return i % 2 == 0 ? 3.0f : -3.0f; });
    add_row(in, [](std::int64_t i) { return i % 3 == 0 ? 0.1f : -3.0f; });
  }
  for (int byte : {0x00, 0x7f, 0x80, 0x88, 0xf0, 0x0f, 0xff}) {
    const FileMatrix w = constant_matrix(type, cols, byte, random);
    const Output expected = run_project_add(lab.reference(), in, in.rows, w);
    for (NamedBackend& path : lab.paths()) {
      ASSERT_EQ(difference(expected, run_project_add(*path.backend, in, in.rows, w)), "")
          << path.name << ", byte " << byte;
    }
  }
}

struct Fault {
  std::int64_t row;
  float value;
};
const std::vector<Fault> kFaults{{0, kNan}, {5, kInfinity}, {6, -kInfinity}, {13, kNan}, {20, kInfinity}};
const std::vector<std::uint8_t> kFaultyRows{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};

// The rows without a fault have the bits they have when no row has one.
void expect_untouched(const Output& clean, const Output& broken, std::int64_t width, const std::string& what) {
  for (std::size_t row = 0; row < kFaultyRows.size(); ++row) {
    if (kFaultyRows[row] != 0) continue;
    const std::size_t at = row * static_cast<std::size_t>(width), count = static_cast<std::size_t>(width);
    ASSERT_EQ(first_difference(std::span(clean.values).subspan(at, count), std::span(broken.values).subspan(at, count)),
              -1)
        << what << ", row " << row;
  }
}

TEST_P(Extremes, a_non_finite_value_marks_its_row_and_touches_no_other) {
  const std::int64_t rows = 21, outputs = 33;
  const FileMatrix w = random_matrix(type, outputs, cols, random);
  const RowInputs clean = random_inputs(rows, cols, random);
  RowInputs broken = clean;
  for (const Fault& fault : kFaults)
    broken.h[static_cast<std::size_t>(fault.row * cols + random.below(cols))] = fault.value;

  const Output expected = run_project_add(lab.reference(), broken, rows, w);
  const Output expected_norm = run_gate_up(lab.reference(), broken, rows, w, w);
  for_all_backends([&](Backend& backend, const std::string& name) {
    const Output added = run_project_add(backend, broken, rows, w), gated = run_gate_up(backend, broken, rows, w, w);
    ASSERT_EQ(added.faulty, kFaultyRows) << name;
    ASSERT_EQ(gated.faulty, kFaultyRows) << name;
    EXPECT_EQ(difference(expected, added), "") << name;
    EXPECT_EQ(difference(expected_norm, gated), "") << name;
    expect_untouched(run_project_add(backend, clean, rows, w), added, outputs, name);
    expect_untouched(run_gate_up(backend, clean, rows, w, w), gated, outputs, name);
  });
}

// Row 5 alone sees the input that an enormous weight stands at: finite inputs, finite weights, an infinite product.
TEST_P(Extremes, a_row_that_overflows_between_gate_up_and_down_add_is_marked_and_alone) {
  const std::int64_t width = traits(type).block == 256 ? 256 : 64, column = 7;
  FileMatrix gate = random_matrix(DType::f32, width, 64, random);
  const float enormous = 1e25f;
  std::memcpy(gate.bytes.data() + (40 * 64 + column) * 4, &enormous, sizeof enormous);
  const FileMatrix down = random_matrix(type, 33, width, random);
  RowInputs in = random_inputs(13, 64, random);
  for (std::int64_t row = 0; row < 13; ++row)
    in.h[static_cast<std::size_t>(row * 64 + column)] = row == 5 ? 1.0f : 0.0f;
  const Output expected = run_feed_forward(lab.reference(), in, 13, gate, down, false);
  ASSERT_EQ(expected.faulty, (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  for_all_backends([&](Backend& backend, const std::string& name) {
    EXPECT_EQ(difference(expected, run_feed_forward(backend, in, 13, gate, down, true)), "") << name;
  });
}

TEST_P(Extremes, head_marks_the_faulty_ones_of_its_wanted_rows) {
  const FileMatrix w = random_matrix(type, 33, cols, random);
  RowInputs in = random_inputs(8, cols, random);
  for (std::int64_t row : {1, 4, 7}) in.h[static_cast<std::size_t>(row * cols + 11)] = kNan;
  const std::vector<std::int32_t> wanted{7, 0, 4};
  for_all_backends([&](Backend& backend, const std::string& name) {
    EXPECT_EQ(run_head(backend, in, 8, wanted, w).faulty, (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 0, 0, 1})) << name;
  });
}

TEST_P(Extremes, a_row_that_was_faulty_stays_so) {
  const FileMatrix w = random_matrix(type, 16, cols, random);
  const RowInputs in = random_inputs(3, cols, random);
  for_all_backends([&](Backend& backend, const std::string& name) {
    const TestWeight weight(backend, w);
    RowLaunch launch(3);
    launch.faulty = {0, 1, 0};
    std::vector<float> h(48);
    backend.project_add(h.data(), in.h.data(), weight.weight, launch.view());
    EXPECT_EQ(launch.faulty, (std::vector<std::uint8_t>{0, 1, 0})) << name;
  });
}

// Row 37 gets a NaN for the (first) half-precision number of its last block.
void spoil_row_37(FileMatrix& w) {
  const TypeTraits& t = traits(w.type);
  const std::size_t last_block = static_cast<std::size_t>(w.row_bytes()) - t.bytes;
  const std::size_t scale = w.type == DType::q6_k ? 208 : 0;
  std::byte* at = w.bytes.data() + 37 * w.row_bytes() + last_block + scale;
  const std::uint16_t half = w.type == DType::bf16 ? 0x7fc0 : 0x7e00;
  if (w.type == DType::f32) {
    std::memcpy(at, &kNan, 4);
  } else {
    std::memcpy(at, &half, 2);
  }
}

TEST_P(Extremes, fill_refuses_a_non_finite_scale_and_names_the_row) {
  FileMatrix w = random_matrix(type, 40, cols, random);
  spoil_row_37(w);
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    return std::span(w.bytes).subspan(static_cast<std::size_t>(first * w.row_bytes()),
                                      static_cast<std::size_t>(count * w.row_bytes()));
  };
  for_all_backends([&](Backend& backend, const std::string& name) {
    const Buffer memory = backend.allocate(backend.weight_bytes(type, 40, cols));
    const PreparedWeight weight{type, 40, cols, memory.data()};
    EXPECT_TRUE(backend.fill(weight, 0, 32, rows(0, 32)).ok()) << name;
    const Result<void> refused = backend.fill(weight, 32, 8, rows(32, 8));
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.error().message.find("row 37"), std::string::npos) << name << ": " << refused.error().message;
  });
}

// What `run` gives under a foreign control word is what it gives under ours, and the foreign one is left in place.
template <class Run>
void expect_own_float_mode(Run&& run, const std::string& what) {
  constexpr unsigned kSeen = 0x3f;                // exceptions that were seen: not a mode
  constexpr unsigned kForeign = 0x8040 | 0x2000;  // flush to zero, denormals are zero, round down
  const Output expected = run();
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kForeign);
  const Output actual = run();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(difference(expected, actual), "") << what;
  EXPECT_EQ(after & ~kSeen, (before | kForeign) & ~kSeen) << what << " left another mode behind";
}

TEST_P(Extremes, a_host_that_flushes_denormals_and_rounds_down_changes_nothing) {
  const FileMatrix w = random_matrix(type, 20, cols, random);
  const RowInputs ordinary = random_inputs(4, cols, random);
  RowInputs tiny = ordinary;  // denormal, and its products with plain weights are
  for (float& x : tiny.h) x *= 0x1p-130f;
  for_all_backends([&](Backend& backend, const std::string& name) {
    expect_own_float_mode([&] { return run_gate_up(backend, ordinary, 4, w, w); }, name + ", gate_up");
    expect_own_float_mode([&] { return run_project_add(backend, ordinary, 4, w); }, name + ", project_add");
    expect_own_float_mode([&] { return run_project_add(backend, tiny, 4, w); }, name + ", denormals");
  });
}

std::string format_name(const testing::TestParamInfo<DType>& info) {
  return std::string(traits(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Format, Extremes, testing::ValuesIn(all_formats()), format_name);

}  // namespace
}  // namespace troupe::test
