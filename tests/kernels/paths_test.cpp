// Which paths this processor can run, and how a user's choice of one is answered.
#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/backend_lab.h"

namespace troupe::test {
namespace {

TEST(Paths, every_supported_one_is_compared_with_one_two_and_three_threads) {
  std::size_t expected = 0;
  for (Isa isa : kIsas) {
    std::printf("%s: %s\n", name(isa), supported(isa) ? "tested" : "not on this processor");
    if (supported(isa)) expected += 3;
  }
  const bool emulated = supported(Isa::avx512_vnni);
  std::printf("amx over emulated tile registers: %s\n", emulated ? "tested" : "needs AVX-512 VNNI");
  if (emulated) expected += 3;
  EXPECT_EQ(Lab::get().paths().size(), expected);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_GE(expected, 3u);
  }
}

TEST(Paths, the_best_is_the_strongest_supported_one) {
  for (Isa isa : kIsas) {
    if (!supported(isa)) continue;
    ASSERT_TRUE(best_isa().ok());
    EXPECT_GE(static_cast<int>(*best_isa()), static_cast<int>(isa));
  }
}

TEST(Paths, a_users_choice_is_made_or_refused_with_a_sentence) {
  for (Isa isa : kIsas) {
    const Result<std::unique_ptr<Backend>> made = make_backend(name(isa), 2);
    ASSERT_EQ(made.ok(), supported(isa)) << name(isa);
    if (made) {
      EXPECT_THAT((*made)->describe(), testing::EndsWith(std::string(name(isa)) + ", 2 threads"));
    } else {
      EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    }
  }
  ASSERT_TRUE(make_backend("reference", 1).ok());
  EXPECT_EQ((*make_backend("reference", 1))->describe(), "reference");
  EXPECT_EQ(make_backend("auto", 0).ok(), best_isa().ok());
  EXPECT_EQ(make_backend("", 1).ok(), best_isa().ok());
  const Result<std::unique_ptr<Backend>> unknown = make_backend("sse9", 1);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::bad_input);
  EXPECT_NE(unknown.error().message.find("sse9"), std::string::npos);
  EXPECT_FALSE(make_backend("auto", -1).ok());
}

// backend.h: at most 1.03 times the file's bytes, plus the padding of the rows to a multiple of 16; a multiple of 64.
TEST(Paths, prepared_weights_are_hardly_larger_than_the_file) {
  for (NamedBackend& path : Lab::get().paths()) {
    for (DType type : all_formats()) {
      for (std::int64_t rows : {1, 16, 33, 576}) {
        for (std::int64_t cols : {std::int64_t{256}, std::int64_t{768}, std::int64_t{1536}}) {
          const std::size_t bytes = path.backend->weight_bytes(type, rows, cols);
          const std::int64_t padded_rows = (rows + 15) / 16 * 16;
          const auto padded = static_cast<double>(padded_rows * Tensor{nullptr, type, rows, cols}.row_bytes());
          EXPECT_EQ(bytes % 64, 0u);
          EXPECT_LE(static_cast<double>(bytes), padded * 1.03) << traits(type).name << " " << rows << " x " << cols;
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::test
