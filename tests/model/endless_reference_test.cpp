// What an endless session costs in quality: over four windows of real text, halves that are dropped now and then
// predict nearly as well as a window that is computed anew for every single token. TROUPE_MODEL names the model's file.
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>

#include "runtime/perplexity.h"
#include "runtime/token_window.h"
#include "tests/model/default_model.h"
#include "tests/support/promise.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

class EndlessText : public ::testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.context = 1024;
    options.kv_memory = std::uint64_t{64} << 20;
    engine_ = test::open_default_model(options);
    text_ = test::stored_prose(TROUPE_TEST_DATA);
    text_.resize(static_cast<std::size_t>(4 * kWindow.tokens));
  }

  // The log-probabilities of the last `count` tokens, each after what stands before it.
  std::vector<double> last_logprobs(const std::vector<TokenId>& tokens, std::size_t count) {
    const auto scored = perplexity(*engine_, tokens, {.window = 0, .progress = {}});
    if (!scored) throw std::runtime_error(scored.error().message);
    return {scored->logprobs.end() - static_cast<std::ptrdiff_t>(count), scored->logprobs.end()};
  }

  // Of every token behind the first window, as an endless session sees it.
  std::vector<double> as_an_endless_session() {
    std::vector<double> all;
    for (std::int64_t at = kWindow.tokens; at < std::ssize(text_);) {
      std::int64_t end = at;
      while (end < std::ssize(text_) && kWindow.dropped(end) == kWindow.dropped(at)) ++end;
      auto tokens = kWindow.visible(std::span(text_).first(static_cast<std::size_t>(at)), 0);
      tokens.insert(tokens.end(), text_.begin() + at, text_.begin() + end);
      const auto part = last_logprobs(tokens, static_cast<std::size_t>(end - at));
      all.insert(all.end(), part.begin(), part.end());
      at = end;
    }
    return all;
  }

  // Of the token at `at`, behind the sinks and as many of the newest tokens as the window holds.
  double with_a_full_window(std::int64_t at) {
    std::vector<TokenId> tokens(text_.begin(), text_.begin() + kWindow.sinks);
    tokens.insert(tokens.end(), text_.begin() + at - (kWindow.tokens - 1 - kWindow.sinks), text_.begin() + at + 1);
    return last_logprobs(tokens, 1)[0];
  }

  static constexpr TokenWindow kWindow{128, 4};
  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> text_;
};

TEST_F(EndlessText, predicts_within_ten_percent_of_a_window_computed_anew_for_every_token) {
  const auto endless = as_an_endless_session();
  ASSERT_EQ(std::ssize(endless), 3 * kWindow.tokens);
  const std::int64_t stride = test::small_scale() ? 48 : 8;
  double sum = 0, full = 0;
  int count = 0;
  for (std::int64_t at = kWindow.tokens; at < std::ssize(text_); at += stride, ++count) {
    sum -= endless[static_cast<std::size_t>(at - kWindow.tokens)];
    full -= with_a_full_window(at);
  }
  const double ratio = std::exp((sum - full) / count);
  std::printf("  perplexity %.3f, with a full window at each of %d tokens %.3f (ratio %.4f)\n", std::exp(sum / count),
              count, std::exp(full / count), ratio);
  EXPECT_LE(ratio, 1.10);
  EXPECT_GE(ratio, 0.90);
  test::promise("C16", "perplexity over 4 windows within 10 % of recomputing at every token");
}

}  // namespace
}  // namespace troupe
