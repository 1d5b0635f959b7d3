// Perplexity: fresh windows, the first token of each unscored, whatever the launches.
#include "runtime/perplexity.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tests/runtime/engine_lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe {
namespace {

class PerplexityOf : public ::testing::Test {
 protected:
  ScratchFolder folder_;
  std::unique_ptr<Engine> engine_ = test::open_engine(
      write_tiny_model(tiny_model(DType::q8_0), folder_.file("model.gguf")), test::tiny_options({"auto", 2}));
  std::vector<TokenId> tokens_ = [] {
    test::Random random(4);
    return test::random_tokens(random, 200, 512);
  }();
};

TEST_F(PerplexityOf, scores_every_token_but_the_first_of_each_window) {
  const auto result = perplexity(*engine_, tokens_, {.window = 90, .progress = {}});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->logprobs.size(), 89u + 89u + 19u);
  double nll = 0.0;
  std::size_t scored = 0;
  for (std::size_t at = 0; at < tokens_.size(); at += 90) {
    const std::vector<TokenId> window(tokens_.begin() + static_cast<std::ptrdiff_t>(at),
                                      tokens_.begin() + static_cast<std::ptrdiff_t>(std::min(at + 90, tokens_.size())));
    const std::vector<float> logits = test::all_logits(*engine_, window, 1000);
    for (std::size_t i = 0; i + 1 < window.size(); ++i, ++scored) {
      double total = 0.0;
      for (std::size_t id = 0; id < 512; ++id) total += std::exp(static_cast<double>(logits[i * 512 + id]));
      const double logprob = logits[i * 512 + static_cast<std::size_t>(window[i + 1])] - std::log(total);
      EXPECT_NEAR(result->logprobs[scored], logprob, 1e-4);
      nll -= logprob;
    }
  }
  EXPECT_NEAR(result->value, std::exp(nll / static_cast<double>(scored)), 1e-3 * result->value);
}

TEST_F(PerplexityOf, one_window_holds_all_tokens_when_asked) {
  const auto whole = perplexity(*engine_, tokens_, {.window = 0, .progress = {}});
  const auto wide = perplexity(*engine_, tokens_, {.window = 512, .progress = {}});
  ASSERT_TRUE(whole.ok() && wide.ok());
  EXPECT_EQ(whole->value, wide->value);
  EXPECT_EQ(whole->logprobs.size(), 199u);
}

TEST_F(PerplexityOf, too_few_tokens_and_too_wide_windows_are_refused_with_their_numbers) {
  const auto few = perplexity(*engine_, std::span(tokens_).first(1), {});
  ASSERT_FALSE(few.ok());
  EXPECT_NE(few.error().message.find("1 token"), std::string::npos);
  std::vector<TokenId> many(1025, 5);
  const auto wide = perplexity(*engine_, many, {.window = 0, .progress = {}});
  ASSERT_FALSE(wide.ok());
  EXPECT_NE(wide.error().message.find("1025"), std::string::npos);
  EXPECT_NE(wide.error().message.find("1024"), std::string::npos);
}

}  // namespace
}  // namespace troupe
