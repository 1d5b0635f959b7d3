// The llama model: its equations against plain double ones, and every contradictory file refused by key and number.
#include <cmath>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>

#include "runtime/engine.h"
#include "tests/runtime/engine_lab.h"
#include "tests/runtime/plain_llama.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe {
namespace {

// The relative distance of all logits together, the engine with float weights and a float cache.
double distance_from_plain(const GgufImage& image, const std::string& isa) {
  ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  write_file(path, image.bytes());
  EngineOptions options = test::tiny_options({isa, 2});
  options.expand_to_f32 = true;
  options.kv_type = KvType::f32;
  const auto engine = test::open_engine(path, options);
  test::Random random(3);
  const std::vector<TokenId> tokens = test::random_tokens(random, 40, engine->shape().vocabulary);
  const std::vector<float> logits = test::all_logits(*engine, tokens, 7);
  const std::vector<double> plain = test::plain_llama_logits(path, tokens);
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    difference += (logits[i] - plain[i]) * (logits[i] - plain[i]);
    size += plain[i] * plain[i];
  }
  return std::sqrt(difference / size);
}

TinyModel with(const std::function<void(TinyModel&)>& change) {
  TinyModel model = tiny_model(DType::f32);
  change(model);
  return model;
}

TEST(Llama, agrees_with_its_equations_in_double) {
  const std::pair<const char*, TinyModel> models[] = {
      {"grouped heads", tiny_model(DType::f32)},
      {"as many kv heads", with([](TinyModel& m) { m.kv_heads = m.heads; })},
      {"one kv head", with([](TinyModel& m) { m.kv_heads = 1; })},
      {"a head of its own", with([](TinyModel& m) { m.tied = false; })},
      {"linear rope scaling", with([](TinyModel& m) { m.rope_linear_factor = 4.0; })},
      {"rope factors", with([](TinyModel& m) { m.rope_factors = true; })},
      {"three layers, wide", with([](TinyModel& m) { m.layers = 3, m.width = 96, m.heads = 3, m.kv_heads = 3; })},
      {"a quantized file", tiny_model(DType::q4_1)},
      {"another type for the head", with([](TinyModel& m) { m.type = DType::q8_0, m.head_type = DType::f16; })},
  };
  for (const auto& [what, model] : models) {
    for (const std::string& isa : {std::string("reference"), std::string("auto")}) {
      const double distance = distance_from_plain(tiny_model_image(model), isa);
      std::printf("%-28s %-10s relative distance %.1e\n", what, isa.c_str(), distance);
      EXPECT_LT(distance, 2e-5) << what;
    }
  }
}

TEST(Llama, reads_heads_of_another_size_and_a_partial_rope) {
  TinyModel model = tiny_model(DType::f32);
  GgufImage image = tiny_model_image(model);
  image.set("llama.rope.dimension_count", 8u);
  EXPECT_LT(distance_from_plain(image, "auto"), 2e-5);
  // 2 heads of 32 instead of 4 of 16: the same tensors.
  image.set("llama.attention.head_count", 2u);
  image.set("llama.attention.head_count_kv", 1u);
  image.set("llama.attention.key_length", 32u);
  image.set("llama.attention.value_length", 32u);
  EXPECT_LT(distance_from_plain(image, "auto"), 2e-5);
}

// The sentence that refuses the changed file.
std::string refusal(const std::function<void(GgufImage&)>& change) {
  static const GgufImage kValid = tiny_model_image(tiny_model(DType::q8_0));
  GgufImage image = kValid;
  change(image);
  ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  write_file(path, image.bytes());
  const auto engine = Engine::open(path, test::tiny_options({"reference", 1}));
  return engine ? "" : engine.error().message;
}

TEST(Llama, refuses_contradictory_and_missing_values_by_key_and_number) {
  struct Case {
    std::vector<std::string> words;  // all stand in the sentence
    std::function<void(GgufImage&)> change;
  };
  const Case cases[] = {
      {{"llama.block_count"}, [](GgufImage& i) { i.erase("llama.block_count"); }},
      {{"llama.block_count", "0"}, [](GgufImage& i) { i.set("llama.block_count", 0u); }},
      {{"llama.block_count", "4000000000"}, [](GgufImage& i) { i.set("llama.block_count", 4'000'000'000u); }},
      {{"llama.block_count", "1000000", "tensors"}, [](GgufImage& i) { i.set("llama.block_count", 1'000'000u); }},
      {{"blk.2.attn_norm.weight", "missing"}, [](GgufImage& i) { i.set("llama.block_count", 3u); }},
      {{"llama.embedding_length", "string"}, [](GgufImage& i) { i.set("llama.embedding_length", std::string("64")); }},
      {{"llama.embedding_length", "66", "4"}, [](GgufImage& i) { i.set("llama.embedding_length", 66u); }},
      {{"output_norm.weight", "64", "128"}, [](GgufImage& i) { i.set("llama.embedding_length", 128u); }},
      {{"head_count", "4", "3"}, [](GgufImage& i) { i.set("llama.attention.head_count_kv", 3u); }},
      {{"head_count", "0"}, [](GgufImage& i) { i.set("llama.attention.head_count", 0u); }},
      {{"attn_k.weight", "[32 x 64]", "[64 x 64]"}, [](GgufImage& i) { i.set("llama.attention.head_count_kv", 4u); }},
      {{"llama.feed_forward_length"}, [](GgufImage& i) { i.erase("llama.feed_forward_length"); }},
      {{"ffn_gate.weight", "[128 x 64]", "[256 x 64]"}, [](GgufImage& i) { i.set("llama.feed_forward_length", 256u); }},
      {{"layer_norm_rms_epsilon"}, [](GgufImage& i) { i.erase("llama.attention.layer_norm_rms_epsilon"); }},
      {{"layer_norm_rms_epsilon", "-1"}, [](GgufImage& i) { i.set("llama.attention.layer_norm_rms_epsilon", -1.0f); }},
      {{"rope.freq_base", "nan"}, [](GgufImage& i) { i.set("llama.rope.freq_base", std::nanf("")); }},
      {{"rope.dimension_count", "15"}, [](GgufImage& i) { i.set("llama.rope.dimension_count", 15u); }},
      {{"rope.dimension_count", "18", "16"}, [](GgufImage& i) { i.set("llama.rope.dimension_count", 18u); }},
      {{"rope.scaling.type", "yarn", "linear"},
       [](GgufImage& i) { i.set("llama.rope.scaling.type", std::string("yarn")); }},
      {{"key_length", "value_length"}, [](GgufImage& i) { i.set("llama.attention.value_length", 32u); }},
      {{"heads of 8"},
       [](GgufImage& i) {
         i.set("llama.attention.head_count", 8u);
         i.set("llama.attention.head_count_kv", 4u);
         i.set("llama.rope.dimension_count", 8u);
       }},
      {{"llama.context_length"}, [](GgufImage& i) { i.erase("llama.context_length"); }},
      {{"context", "2000000", "--context"}, [](GgufImage& i) { i.set("llama.context_length", 2'000'000u); }},
      {{"expert"}, [](GgufImage& i) { i.set("llama.expert_count", 8u); }},
      {{"rope_freqs.weight"}, [](GgufImage& i) { i.add_tensor("rope_freqs.weight", {4}, 0, std::string(16, '\0')); }},
      {{"rope_freqs.weight"}, [](GgufImage& i) { i.add_tensor("rope_freqs.weight", {8}, 0, std::string(32, '\0')); }},
      {{"'mamba'", "llama"}, [](GgufImage& i) { i.set("general.architecture", std::string("mamba")); }},
      {{"general.architecture"}, [](GgufImage& i) { i.erase("general.architecture"); }},
      {{"vocabulary", "512", "tokens"},
       [](GgufImage& i) {
         i.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
         i.erase("tokenizer.ggml.token_type");
         i.erase("tokenizer.ggml.merges");
       }},
  };
  EXPECT_EQ(refusal([](GgufImage&) {}), "");
  for (const Case& one : cases) {
    const std::string sentence = refusal(one.change);
    EXPECT_NE(sentence, "") << one.words[0];
    for (const std::string& word : one.words)
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
  }
}

TEST(Llama, takes_absent_optional_values_at_their_defaults) {
  EXPECT_EQ(refusal([](GgufImage& i) { i.erase("llama.rope.dimension_count"); }), "");
  EXPECT_EQ(refusal([](GgufImage& i) { i.erase("llama.rope.freq_base"); }), "");
  EXPECT_EQ(refusal([](GgufImage& i) { i.set("llama.rope.scaling.type", std::string("none")); }), "");
  EXPECT_EQ(refusal([](GgufImage& i) { i.set("llama.expert_count", 0u); }), "");
}

}  // namespace
}  // namespace troupe
