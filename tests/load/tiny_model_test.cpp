// The tiny models themselves: other tests rest on their being the same everywhere and worth asking.
#include "tests/support/tiny_model.h"

#include <gmock/gmock.h>
#include <set>

#include "tests/load/open_model.h"
#include "tests/support/scratch_folder.h"

namespace troupe::test {
namespace {

std::uint64_t fnv(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

TEST(TinyModel, has_the_same_bytes_everywhere) {
  EXPECT_EQ(fnv(tiny_model_image(tiny_model(DType::f32)).bytes()), 2885385062196054316u);
  EXPECT_EQ(fnv(tiny_model_image(tiny_model(DType::q4_k)).bytes()), 7505778844662493049u);
  EXPECT_EQ(fnv(tiny_model_image(tiny_model_576(DType::q4_1)).bytes()), 1543816608526911232u);
}

TEST(TinyModel, every_type_opens_and_answers_and_prompts_differ) {
  const ScratchFolder folder;
  for (int i = 0; i <= static_cast<int>(DType::q6_k); ++i) {
    const DType type = static_cast<DType>(i);
    SCOPED_TRACE(traits(type).name);
    auto engine = open_model(write_tiny_model(tiny_model(type), folder.file("m.gguf")));
    ASSERT_TRUE(engine) << engine.error().message;
    const auto one = greedy(**engine, {70, 80, 90, 100}, 24), other = greedy(**engine, {75, 85, 95, 105}, 24);
    ASSERT_EQ(one.size(), 24u);
    EXPECT_NE(one, other);
    EXPECT_GE(std::set<TokenId>(one.begin(), one.end()).size(), 8u) << "an answer that hardly wanders";
    for (TokenId token : one) EXPECT_GE(token, 3) << "a control token";
  }
}

TEST(TinyModel, its_options_matter) {
  const ScratchFolder folder;
  std::set<std::vector<TokenId>> answers;
  TinyModel plain, base, linear, factors, untied, seed;
  base.rope_base = 500.0;
  linear.rope_linear_factor = 4.0;
  factors.rope_factors = true;
  untied.tied = false;
  seed.seed = 2;
  for (const TinyModel& model : {plain, base, linear, factors, untied, seed}) {
    auto engine = open_model(write_tiny_model(model, folder.file("m.gguf")));
    ASSERT_TRUE(engine) << engine.error().message;
    answers.insert(greedy(**engine, {70, 80, 90, 100, 110, 120, 130, 140}, 24));
  }
  EXPECT_EQ(answers.size(), 6u);
}

}  // namespace
}  // namespace troupe::test
