// What a turn's choices remember: nothing when no rule asks, Mirostat's mu step by step, and never what a step reads.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "runtime/sampling/memory.h"
#include "tests/support/random.h"
#include "tests/text/text_data.h"

namespace troupe::test {
namespace {

class Memory : public testing::Test {
 protected:
  std::shared_ptr<SamplerState> first(const SamplingParams& params) const {
    return first_memory(params, std::vector<TokenId>{5, 6, 5}, *vocabulary_);
  }
  std::shared_ptr<const Vocabulary> vocabulary_ = make_vocabulary(small_vocabulary_data("smollm"));
};

TEST_F(Memory, is_there_only_for_rules_that_are_on) {
  EXPECT_EQ(first({}), nullptr);
  EXPECT_EQ(first({.typical_p = 0.5f, .xtc_probability = 1.0f}), nullptr);
  EXPECT_EQ(first({.repetition_penalty = 1.1f})->in_prompt.at(5), 2);
  EXPECT_TRUE(first({.frequency_penalty = 1.0f})->in_prompt.empty());
  EXPECT_TRUE(first({.frequency_penalty = 1.0f})->history.empty());
  EXPECT_EQ(first({.dry_multiplier = 1.0f})->history, (std::vector<TokenId>{5, 6, 5}));
  EXPECT_EQ(first({.mirostat = 2, .mirostat_tau = 3.0f})->mirostat_mu, 6.0f);
}

TEST_F(Memory, of_a_step_that_still_reads_it_is_never_changed) {
  const SamplingParams params{.dry_multiplier = 1.0f, .mirostat = 2};
  auto state = first(params);
  const std::shared_ptr<const SamplerState> of_the_step = state;
  auto next = accepted(std::move(state), params, {.token = 7, .surprise = 2.0f}, *vocabulary_);
  EXPECT_EQ(of_the_step->history.size(), 3u);
  EXPECT_EQ(of_the_step->mirostat_mu, 10.0f);
  EXPECT_EQ(next->history.back(), 7);
  EXPECT_EQ(next->mirostat_mu, 10.0f - 0.1f * (2.0f - 5.0f));
  const SamplerState* place = next.get();
  next = accepted(std::move(next), params, {.token = 8}, *vocabulary_);
  EXPECT_EQ(next.get(), place) << "nobody else reads it: no copy";
}

// Basu et al. 2021, algorithm 2, in double beside ours.
TEST_F(Memory, and_mirostat_hold_the_surprise_at_tau) {
  const auto backend = make_reference_backend();
  Random random(8);
  for (float tau : {3.0f, 3.5f}) {
    SamplingParams params{.temperature = 1.0f, .mirostat = 2, .mirostat_tau = tau, .mirostat_eta = 0.2f};
    params.seed = 4;
    const int vocabulary = 400, tokens = 1'000;
    Sampler sampler(*backend, vocabulary);
    auto state = first(params);
    double mu = 2.0 * tau, mean = 0.0;
    for (int i = 0; i < tokens; ++i) {
      std::vector<float> logits = random.bells(vocabulary, 4.0f);
      double total = 0.0;
      const std::vector<float> raw = logits;
      for (float l : raw) total += std::exp(static_cast<double>(l));
      Sampled out;
      SampleRequest request{logits.data(), &params, state.get(), {}, i, -1, &out};
      sampler.run({&request, 1});
      const double surprise =
          -std::log2(std::exp(static_cast<double>(raw[static_cast<std::size_t>(out.token)])) / total);
      ASSERT_NEAR(out.surprise, surprise, 1e-4);
      const bool is_best = std::ranges::max_element(raw) - raw.begin() == out.token;
      ASSERT_TRUE(is_best || surprise <= mu + 1e-3) << surprise << " bits were to be cut at " << mu;
      mu -= 0.2 * (surprise - tau);
      state = accepted(std::move(state), params, out, *vocabulary_);
      ASSERT_NEAR(state->mirostat_mu, mu, 1e-3);
      mean += surprise / tokens;
    }
    std::printf("tau %.1f bits: %.3f bits a token\n", tau, mean);
    EXPECT_NEAR(mean, tau, 0.05);
  }
}

}  // namespace
}  // namespace troupe::test
