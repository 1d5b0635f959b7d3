// Engine: what a launch promises its slices, one by one and together.
#include "runtime/engine.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

#include "tests/runtime/decorated_backend.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/promise.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe {
namespace {

class Engines : public ::testing::Test {
 protected:
  std::string path(DType type = DType::q4_1) {
    return write_tiny_model(tiny_model(type), folder_.file(std::string(traits(type).name)));
  }
  std::unique_ptr<Engine> open(const EngineOptions& options = test::tiny_options({"auto", 2})) {
    return test::open_engine(path(), options);
  }
  std::string refusal(const EngineOptions& options) {
    const auto engine = Engine::open(path(), options);
    return engine ? "" : engine.error().message;
  }

  ScratchFolder folder_;
};

// A sequence with its own cache, for tests that build batches by hand.
struct Sequence {
  Sequence(Engine& engine, std::uint64_t seed, std::int64_t length) : cache(engine.pages()) {
    test::Random random(seed);
    tokens = test::random_tokens(random, length, engine.shape().vocabulary);
    logits.resize(tokens.size() * static_cast<std::size_t>(engine.shape().vocabulary));
    if (!cache.reserve(length + 16)) throw std::runtime_error("no pages");
    params.seed = seed;
  }
  // All its tokens from `from` on, with logits and a sampled token.
  Slice slice(std::size_t from = 0) {
    lease = cache.lend();
    const std::size_t vocabulary = logits.size() / tokens.size();
    return {.cache = &lease,
            .position = static_cast<std::int64_t>(from),
            .tokens = std::span(tokens).subspan(from),
            .wants_token = true,
            .sampling = &params,
            .logits = std::span(logits).subspan(from * vocabulary)};
  }
  bool same_logits(const Sequence& other) const {
    return std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }

  KvCache cache;
  KvLease lease;
  std::vector<TokenId> tokens;
  std::vector<float> logits;
  SamplingParams params;
};

TEST_F(Engines, a_nan_in_one_cache_fails_that_slice_and_leaves_the_others_bits) {
  for (const char* isa : {"reference", "auto"}) {
    const auto engine = open(test::tiny_options({isa, 2}));
    const auto run = [&](bool poisoned) {
      std::vector<Sequence> sequences;
      std::vector<Slice> slices;
      sequences.reserve(3);
      for (std::uint64_t seed : {1u, 2u, 3u}) {
        Sequence& one = sequences.emplace_back(*engine, seed, 40);
        Slice first = one.slice();
        first.tokens = first.tokens.first(20);
        first.logits = {};
        engine->run({&first, 1});
        one.cache.commit(20);
      }
      const KvLease middle = sequences[1].cache.lend();
      // The keys of a head: NaN, in i8 because their scales are.
      if (poisoned) std::memset(middle.pages()[0], 0xff, engine->pages()->layout().head_bytes());
      sequences[1].cache.revoke();
      for (Sequence& one : sequences) slices.push_back(one.slice(20));
      engine->run(slices);
      std::vector<bool> failed;
      for (const Slice& slice : slices) failed.push_back(slice.failed);
      EXPECT_EQ(failed, (std::vector<bool>{false, poisoned, false})) << isa;
      EXPECT_EQ(slices[1].failure.find("position 20") != std::string::npos, poisoned) << slices[1].failure;
      return sequences;
    };
    const auto healthy = run(false), sick = run(true);
    EXPECT_TRUE(healthy[0].same_logits(sick[0]));
    EXPECT_TRUE(healthy[2].same_logits(sick[2]));
  }
}

TEST_F(Engines, a_launch_that_throws_commits_nothing_and_the_next_one_is_right) {
  bool armed = false;
  auto backend = make_backend("auto", 2);
  ASSERT_TRUE(backend.ok());
  const auto engine = test::open_on(std::make_unique<test::ThrowingBackend>(std::move(*backend), armed), path(),
                                    test::tiny_options({"auto", 2}));
  Sequence undisturbed(*engine, 5, 30), disturbed(*engine, 5, 30);
  Slice slice = undisturbed.slice();
  engine->run({&slice, 1});
  const TokenId expected = slice.sampled.token;

  armed = true;
  const auto launches = engine->counters().launches;
  slice = disturbed.slice();
  EXPECT_THROW(engine->run({&slice, 1}), StepFault);
  disturbed.cache.revoke();
  EXPECT_EQ(disturbed.cache.length(), 0);
  EXPECT_EQ(engine->counters().launches, launches);

  armed = false;
  slice = disturbed.slice();
  engine->run({&slice, 1});
  EXPECT_EQ(slice.sampled.token, expected);
  EXPECT_TRUE(disturbed.same_logits(undisturbed));
}

TEST_F(Engines, a_slice_that_bans_every_token_fails_alone) {
  const auto engine = open();
  Sequence banned(*engine, 1, 5), free(*engine, 2, 5);
  for (TokenId id = 0; id < engine->shape().vocabulary; ++id) banned.params.logit_bias.emplace_back(id, -100.0f);
  std::vector<Slice> slices{banned.slice(), free.slice()};
  engine->run(slices);
  EXPECT_TRUE(slices[0].failed);
  EXPECT_NE(slices[0].failure, "");
  EXPECT_FALSE(slices[1].failed);
  EXPECT_GE(slices[1].sampled.token, 0);
}

TEST_F(Engines, logits_come_raw_although_bias_and_penalties_apply) {
  const auto engine = open();
  Sequence plain(*engine, 1, 5), biased(*engine, 1, 5);
  biased.params = SamplingParams::greedy();
  biased.params.logit_bias = {{77, 90.0f}};
  std::vector<Slice> slices{plain.slice(), biased.slice()};
  engine->run(slices);
  EXPECT_TRUE(plain.same_logits(biased));
  EXPECT_EQ(slices[1].sampled.token, 77);
}

TEST_F(Engines, end_tokens_are_banned_on_request) {
  const auto engine = open();
  Sequence one(*engine, 1, 5);
  one.params = SamplingParams::greedy();
  one.params.logit_bias = {{2, 90.0f}};
  Slice slice = one.slice();
  engine->run({&slice, 1});
  EXPECT_EQ(slice.sampled.token, 2);
  slice.no_end_for = 1;
  engine->run({&slice, 1});
  EXPECT_NE(slice.sampled.token, 2);
}

TEST_F(Engines, counts_launches_rows_and_tokens) {
  const auto engine = open();
  Sequence first(*engine, 1, 5), second(*engine, 2, 7);
  std::vector<Slice> slices{first.slice(), second.slice()};
  slices[0].wants_token = false;
  engine->run(slices);
  const EngineCounters counters = engine->counters();
  EXPECT_EQ(counters.launches, 1u);
  EXPECT_EQ(counters.rows, 12u);
  EXPECT_EQ(counters.sampled, 1u);
  EXPECT_GT(counters.seconds, 0.0);
  test::promise("C11", "sequences of 5 and 7 tokens: 12 rows");
}

TEST_F(Engines, broken_promises_of_the_caller_are_caught_and_the_engine_goes_on) {
  const auto engine = open();
  const auto throws = [&](auto spoil) {
    Sequence one(*engine, 1, 20);
    std::vector<Slice> slices{one.slice()};
    spoil(one, slices);
    EXPECT_THROW(engine->run(slices), std::logic_error);
  };
  throws([](Sequence&, auto& slices) { slices.clear(); });
  throws([](Sequence&, auto& slices) { slices.push_back(slices[0]); });
  throws([](Sequence&, auto& slices) { slices[0].tokens = {}; });
  throws([](Sequence&, auto& slices) { slices[0].position = 40; });
  throws([](Sequence&, auto& slices) { slices[0].sampling = nullptr; });
  throws([](Sequence&, auto& slices) { slices[0].logits = slices[0].logits.first(9); });
  throws([&](Sequence& one, auto&) { one.tokens[3] = static_cast<TokenId>(engine->shape().vocabulary); });
  throws([](Sequence& one, auto&) { one.tokens[3] = -1; });
  Sequence one(*engine, 1, 20);
  Slice slice = one.slice();
  engine->run({&slice, 1});
  EXPECT_FALSE(slice.failed);
}

TEST_F(Engines, wrong_options_are_refused_with_their_numbers) {
  const auto with = [](auto change) {
    EngineOptions options = test::tiny_options({"reference", 1});
    change(options);
    return options;
  };
  EXPECT_NE(refusal(with([](auto& o) { o.max_rows = 0; })).find("max_rows is 0"), std::string::npos);
  EXPECT_NE(refusal(with([](auto& o) { o.context = -5; })).find("-5"), std::string::npos);
  EXPECT_NE(refusal(with([](auto& o) { o.kv_memory = 100; })).find("100 bytes"), std::string::npos);
  EXPECT_NE(refusal(with([](auto& o) { o.kv_memory = std::uint64_t{1} << 60; })).find("--kv-memory"),
            std::string::npos);
  EXPECT_NE(refusal(with([](auto& o) { o.isa = "avx9"; })).find("avx9"), std::string::npos);
  EXPECT_FALSE(Engine::open(folder_.file("nothing.gguf"), {}).ok());
}

TEST_F(Engines, the_default_pool_holds_sixteen_contexts_of_a_small_model) {
  EngineOptions options = test::tiny_options({"reference", 1});
  options.kv_memory = 0;
  EXPECT_EQ(open(options)->pages()->total(), 16 * 1024 / KvLayout::kPageTokens);
  options.context = 100;
  const auto engine = open(options);
  EXPECT_EQ(engine->context(), 100);
  EXPECT_EQ(engine->pages()->total(), 16 * pages_for(100));
}

TEST_F(Engines, int8_keys_and_values_make_room_for_more_tokens_in_the_same_memory) {
  EngineOptions options = test::tiny_options({"reference", 1});
  const auto tokens = [&](KvType type) {
    options.kv_type = type;
    const auto engine = open(options);
    const std::int64_t all = engine->pages()->total() * KvLayout::kPageTokens;
    EXPECT_NE(engine->describe().find("(" + std::to_string(all) + " tokens in " + name(type) + ")"), std::string::npos)
        << engine->describe();
    return all;
  };
  const std::int64_t dim = open(options)->shape().head_dim, half = tokens(KvType::f16), int8 = tokens(KvType::i8);
  EXPECT_NEAR(static_cast<double>(int8) / static_cast<double>(half), 2.0 * static_cast<double>(dim) / (dim + 4.0),
              0.01);
  EXPECT_LT(tokens(KvType::f32), half);
}

TEST_F(Engines, the_fingerprint_tells_models_and_cache_types_apart_but_not_paths_or_contexts) {
  const auto of = [&](const std::string& file, const char* isa, KvType type = KvType::f16, std::int64_t context = 0) {
    EngineOptions options = test::tiny_options({isa, 1});
    options.kv_type = type;
    options.context = context;
    return test::open_engine(file, options)->fingerprint();
  };
  TinyModel other = tiny_model(DType::q4_1);
  other.seed = 2;
  const std::string file = path(), sibling = write_tiny_model(other, folder_.file("sibling"));
  EXPECT_EQ(of(file, "reference"), of(file, "auto"));
  EXPECT_EQ(of(file, "auto"), of(file, "auto", KvType::f16, 100));
  EXPECT_NE(of(file, "auto"), of(sibling, "auto"));
  EXPECT_NE(of(file, "auto"), of(file, "auto", KvType::f32));
  std::set<std::uint64_t> all;
  for (KvType type : kKvTypes) {
    for (bool expand : {false, true}) {
      EngineOptions options = test::tiny_options({"auto", 1});
      options.kv_type = type;
      options.expand_to_f32 = expand;
      all.insert(test::open_engine(file, options)->fingerprint());
    }
  }
  EXPECT_EQ(all.size(), 6u);
}

TEST_F(Engines, expanded_weights_give_the_reference_bits_on_the_fast_path) {
  for (DType type : {DType::q4_1, DType::q6_k}) {
    std::vector<float> logits[2];
    for (int i = 0; i < 2; ++i) {
      EngineOptions options = test::tiny_options({i == 0 ? "reference" : "auto", 2});
      options.expand_to_f32 = true;
      options.kv_type = KvType::f32;
      const auto engine = test::open_engine(path(type), options);
      test::Random random(1);
      logits[i] = test::all_logits(*engine, test::random_tokens(random, 70, engine->shape().vocabulary));
    }
    EXPECT_EQ(std::memcmp(logits[0].data(), logits[1].data(), logits[0].size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace troupe
