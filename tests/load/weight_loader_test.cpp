// load_weights: every byte lands where the backend wants it, once, and what goes wrong is said.
#include "runtime/load/weight_loader.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <limits>

#include "kernels/fault.h"
#include "kernels/quant/formats.h"
#include "tests/load/allocation_meter.h"
#include "tests/support/gguf_image.h"
#include "tests/support/random.h"

namespace troupe::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct InMemory {
  explicit InMemory(const GgufImage& image) : bytes(image.bytes()), file(open(bytes)) {}
  static Gguf open(const std::string& bytes) {
    auto file = Gguf::parse(std::as_bytes(std::span(bytes)));
    if (!file) throw std::runtime_error(file.error().message);
    return std::move(*file);
  }
  std::string bytes;
  Gguf file;
};

std::string packed(Random& random, DType type, std::int64_t count) {
  const std::vector<float> values = random.bells(count);
  std::string data(static_cast<std::size_t>(count / traits(type).block * traits(type).bytes), '\0');
  quant::pack(type, values.data(), count, reinterpret_cast<std::byte*>(data.data()));
  return data;
}

// A model of odd sizes: one matrix larger than a staging buffer, rows that are no multiple of 16, several types.
GgufImage odd_image() {
  Random random(5);
  GgufImage image;
  image.add_tensor("large", {2048, 3001}, traits(DType::f16).gguf_type, packed(random, DType::f16, 2048 * 3001));
  image.add_tensor("one_row", {64, 1}, traits(DType::q4_0).gguf_type, packed(random, DType::q4_0, 64));
  image.add_tensor("ragged", {256, 37}, traits(DType::q6_k).gguf_type, packed(random, DType::q6_k, 256 * 37));
  image.add_tensor("norm", {64}, traits(DType::f16).gguf_type, packed(random, DType::f16, 64));
  return image;
}

const std::vector<WeightRequest> kOdd{{"large", 3001, 2048}, {"one_row", 1, 64}, {"ragged", 37, 256}};

TEST(WeightLoader, every_byte_lands_in_its_place_with_one_thread_or_two) {
  const InMemory model(odd_image());
  const auto backend = make_reference_backend();  // keeps the file's own layout
  for (int threads : {1, 2, 7}) {
    const auto set = load_weights(model.file, *backend, kOdd, {.threads = threads});
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_EQ(set->weights.size(), kOdd.size());
    for (std::size_t i = 0; i < kOdd.size(); ++i) {
      const GgufTensor& tensor = *model.file.find_tensor(kOdd[i].name);
      const PreparedWeight& weight = set->weights[i];
      EXPECT_EQ(weight.type, tensor.type);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weight.data) % 64, 0u);
      EXPECT_EQ(std::memcmp(weight.data, model.bytes.data() + tensor.offset, static_cast<std::size_t>(tensor.bytes)), 0)
          << tensor.name;
    }
  }
}

TEST(WeightLoader, expanding_gives_the_exact_values_as_float32) {
  const InMemory model(odd_image());
  const auto backend = make_reference_backend();
  const auto set = load_weights(model.file, *backend, kOdd, {.expand_to_f32 = true});
  ASSERT_TRUE(set) << set.error().message;
  for (std::size_t i = 0; i < kOdd.size(); ++i) {
    const GgufTensor& tensor = *model.file.find_tensor(kOdd[i].name);
    std::vector<float> expected(static_cast<std::size_t>(tensor.rows * tensor.cols));
    quant::dequantize(tensor.type, reinterpret_cast<const std::byte*>(model.bytes.data() + tensor.offset),
                      tensor.rows * tensor.cols, expected.data());
    EXPECT_EQ(set->weights[i].type, DType::f32);
    EXPECT_EQ(std::memcmp(set->weights[i].data, expected.data(), expected.size() * sizeof(float)), 0) << tensor.name;
  }
}

// 12 MB of weights through at most 8 MiB of staging, all of it given back.
TEST(WeightLoader, staging_stays_within_its_allowance_and_goes) {
  const InMemory model(odd_image());
  const auto backend = make_reference_backend();
  for (bool expand : {false, true}) {
    const AllocationMeter meter;
    {
      const auto set = load_weights(model.file, *backend, kOdd, {.expand_to_f32 = expand});
      ASSERT_TRUE(set);
      EXPECT_LE(meter.peak(), WeightOptions::kStaging + 64 * 1024);
      EXPECT_GE(meter.peak(), WeightOptions::kStaging / 4) << "the meter does not measure";
    }
    const AllocationMeter after;
    EXPECT_EQ(after.peak(), 0u);
  }
}

TEST(WeightLoader, progress_ends_with_all_bytes_and_never_goes_back) {
  const InMemory model(odd_image());
  const auto backend = make_reference_backend();
  std::vector<std::uint64_t> seen;
  std::uint64_t all = 0;
  WeightOptions options;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    seen.push_back(done);
    all = total;
  };
  ASSERT_TRUE(load_weights(model.file, *backend, kOdd, options));
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), all);
  EXPECT_EQ(all, model.file.tensor_bytes() - 128);  // without the norm
}

TEST(WeightLoader, a_missing_tensor_and_a_wrong_shape_are_named_with_both_shapes) {
  const InMemory model(odd_image());
  const auto backend = make_reference_backend();
  const std::vector<WeightRequest> missing{{"absent", 1, 64}}, wrong{{"ragged", 256, 37}};
  EXPECT_THAT(load_weights(model.file, *backend, missing, {}).error().message, HasSubstr("absent is missing"));
  EXPECT_THAT(load_weights(model.file, *backend, wrong, {}).error().message,
              AllOf(HasSubstr("ragged"), HasSubstr("[37 x 256]"), HasSubstr("[256 x 37]")));
}

TEST(WeightLoader, a_scale_that_is_not_finite_is_refused_with_tensor_and_row) {
  for (std::size_t row : {0u, 5u, 36u}) {
    GgufImage image = odd_image();
    image.tensor("ragged").data.replace(210 * row + 208, 2, raw<std::uint16_t>(0x7e00));
    const InMemory model(image);
    const auto set = load_weights(model.file, *make_reference_backend(), kOdd, {});
    ASSERT_FALSE(set);
    EXPECT_THAT(set.error().message, AllOf(HasSubstr("ragged"), HasSubstr("row " + std::to_string(row))));
  }
}

TEST(WeightLoader, a_tensor_that_nobody_asks_for_is_refused_by_name) {
  const InMemory model(odd_image());
  EXPECT_TRUE(refuse_other_tensors(model.file, {"ragged", "large", "one_row", "norm", "absent"}));
  EXPECT_THAT(refuse_other_tensors(model.file, {"large", "one_row", "norm"}).error().message, HasSubstr("ragged"));
}

TEST(WeightLoader, a_vector_is_read_as_float32_and_must_be_finite) {
  GgufImage image = odd_image();
  const InMemory model(image);
  const auto vector = load_vector(model.file, "norm", 64);
  ASSERT_TRUE(vector) << vector.error().message;
  const GgufTensor& norm = *model.file.find_tensor("norm");
  std::vector<float> expected(64);
  quant::dequantize(DType::f16, reinterpret_cast<const std::byte*>(model.bytes.data() + norm.offset), 64,
                    expected.data());
  EXPECT_EQ(*vector, expected);
  EXPECT_THAT(load_vector(model.file, "norm", 63).error().message, AllOf(HasSubstr("[64]"), HasSubstr("[63]")));
  image.tensor("norm").data.replace(2 * 63, 2, raw<std::uint16_t>(0xfc00));
  EXPECT_THAT(load_vector(InMemory(image).file, "norm", 64).error().message, HasSubstr("not finite"));
}

// A decorated reference backend whose device breaks at the n-th fill.
class Breaking : public Backend {
 public:
  Breaking(int healthy_fills, bool no_memory) : left_(healthy_fills), no_memory_(no_memory) {}
  std::string describe() const override { return "breaking"; }
  Buffer allocate(std::size_t bytes) override { return plain_->allocate(bytes); }
  std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const override {
    return plain_->weight_bytes(type, rows, cols);
  }
  Result<void> fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                    std::span<const std::byte> file_rows) override {
    if (left_-- > 0) return plain_->fill(weight, first_row, row_count, file_rows);
    if (no_memory_) throw std::bad_alloc();
    throw DeviceFault("the device is gone");
  }
  void reserve(const Limits&) override {}
  void embed(float*, const PreparedWeight&, const BatchView&) override {}
  void qkv(const QkvArgs&, const BatchView&) override {}
  void attend(const AttendArgs&, const BatchView&) override {}
  void project_add(float*, const float*, const PreparedWeight&, const BatchView&) override {}
  void gate_up(const GateUpArgs&, const BatchView&) override {}
  void down_add(float*, const float*, const PreparedWeight&, const BatchView&) override {}
  void head(const HeadArgs&, const BatchView&) override {}
  void top_candidates(std::span<const TopRequest>) override {}
  void log_sum_exp(std::span<const LogSumRequest>) override {}

 private:
  std::unique_ptr<Backend> plain_ = make_reference_backend();
  std::atomic<int> left_;
  bool no_memory_;
};

TEST(WeightLoader, what_a_reading_thread_meets_reaches_the_caller) {
  const InMemory model(odd_image());
  for (int healthy = 0; healthy < 3; ++healthy) {
    Breaking broken(healthy, false), poor(healthy, true);
    EXPECT_THROW((void)load_weights(model.file, broken, kOdd, {}), DeviceFault);
    const auto set = load_weights(model.file, poor, kOdd, {});
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::out_of_memory);
  }
}

}  // namespace
}  // namespace troupe::test
