// DRY against a plain form of p-e-w's definition over token sets, and what the memory makes of breakers.
#include "runtime/sampling/dry.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "runtime/sampling/memory.h"
#include "tests/support/random.h"
#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe::test {
namespace {

// As text-generation-webui's DRYLogitsProcessor words it: breakers are a set of tokens.
std::map<TokenId, double> published_dry(const std::vector<TokenId>& ids, const std::set<TokenId>& breakers,
                                        double multiplier, double base, int allowed_length) {
  std::map<TokenId, double> penalties;
  if (ids.empty() || breakers.contains(ids.back())) return penalties;
  std::map<TokenId, int> match_lengths;
  const auto n = static_cast<int>(ids.size());
  const auto id = [&](int place) { return ids[static_cast<std::size_t>(place)]; };
  for (int i = 0; i < n - 1; ++i) {
    if (id(i) != id(n - 1) || breakers.contains(id(i + 1))) continue;
    int match_length = 1;
    while (match_length < 50 && i - match_length >= 0 && id(i - match_length) == id(n - 1 - match_length) &&
           !breakers.contains(id(i - match_length))) {
      ++match_length;
    }
    match_lengths[id(i + 1)] = std::max(match_lengths[id(i + 1)], match_length);
  }
  for (const auto& [token, length] : match_lengths) {
    if (length >= allowed_length) penalties[token] = multiplier * std::pow(base, length - allowed_length);
  }
  return penalties;
}

class DryRule : public testing::Test {
 protected:
  TokenId id(const char* bytes) const { return *vocabulary_->find(bytes); }
  std::vector<TokenId> ids(const std::string& text) const {
    std::vector<TokenId> tokens;
    for (char c : text) tokens.push_back(*vocabulary_->find(std::string(1, c)));
    return tokens;
  }
  std::map<TokenId, float> penalties(const std::vector<TokenId>& tokens) {
    const auto state = first_memory(params_, tokens, *vocabulary_);
    std::map<TokenId, float> found;
    for (const Candidate& one : dry_.penalties(params_, *state)) {
      EXPECT_TRUE(found.emplace(one.id, one.logit).second) << "a token falls once";
    }
    return found;
  }

  std::shared_ptr<const Vocabulary> vocabulary_ = make_vocabulary(small_vocabulary_data("smollm"));
  SamplingParams params_{.dry_multiplier = 0.5f, .dry_base = 2.0f};
  Dry dry_;
};

TEST_F(DryRule, is_the_published_one) {
  Random random(6);
  std::set<TokenId> breakers;
  for (const std::string& text : params_.dry_sequence_breakers) breakers.insert(*vocabulary_->find(text));
  const std::string letters = "abc\n:";
  for (int round = 0, rounds = small_scale() ? 2'000 : 20'000; round < rounds; ++round) {
    params_.dry_allowed_length = static_cast<std::int32_t>(1 + random.below(4));
    const auto used = static_cast<std::int64_t>(1 + random.below(std::ssize(letters)));
    std::vector<TokenId> tokens = ids(random_text(random, letters.substr(0, static_cast<std::size_t>(used)),
                                                  static_cast<std::size_t>(random.below(120))));
    const auto found = penalties(tokens);
    const auto expected = published_dry(tokens, breakers, 0.5, 2.0, params_.dry_allowed_length);
    ASSERT_EQ(found.size(), expected.size()) << "round " << round;
    // Powers of two: float has them exactly.
    for (const auto& [token, penalty] : expected) ASSERT_EQ(found.at(token), static_cast<float>(penalty)) << round;
  }
}

TEST_F(DryRule, grows_with_the_repetition_from_the_allowed_length_on) {
  EXPECT_TRUE(penalties(ids("")).empty());
  EXPECT_TRUE(penalties(ids("abcdefghi")).empty());
  EXPECT_TRUE(penalties(ids("axyzb a")).empty()) << "one repeated token is allowed";
  EXPECT_EQ(penalties(ids("abxyz ab")), (std::map<TokenId, float>{{id("x"), 0.5f}}));
  EXPECT_EQ(penalties(ids("abcxyz abc")), (std::map<TokenId, float>{{id("x"), 1.0f}}));
  EXPECT_EQ(penalties(ids("abcx bcy abc")), (std::map<TokenId, float>{{id("x"), 1.0f}, {id("y"), 0.5f}}));
  EXPECT_EQ(penalties(ids(std::string(300, 'a'))).at(id("a")), 0.5f * std::ldexp(1.0f, 48)) << "50 tokens at most";
}

TEST_F(DryRule, reaches_across_no_breaker) {
  EXPECT_EQ(penalties(ids("a:bcx a:bc")), (std::map<TokenId, float>{{id("x"), 0.5f}}));
  EXPECT_TRUE(penalties(ids("ab:x ab:")).empty()) << "after a breaker anything may come";
  EXPECT_TRUE(penalties(ids("ab: ab")).empty()) << "a breaker may always come";
  params_.dry_sequence_breakers.clear();
  EXPECT_EQ(penalties(ids("ab: ab")), (std::map<TokenId, float>{{id(":"), 0.5f}}));
}

TEST_F(DryRule, finds_a_breaker_whichever_tokens_it_is_written_in) {
  params_.dry_sequence_breakers = {"xyz"};
  const std::vector<TokenId> tokens = ids("abxyzcd  abxyzcd");
  const auto state = first_memory(params_, tokens, *vocabulary_);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(state->breaks[i], i == 4 || i == 13) << i;
  EXPECT_EQ(penalties(ids("xyzcd  zcd")), (std::map<TokenId, float>{{id(" "), 0.5f}})) << "it broke then";
  EXPECT_EQ(penalties(ids("zcd  xyzcd")), (std::map<TokenId, float>{{id(" "), 0.5f}})) << "it breaks now";
  params_.dry_sequence_breakers = {"x", "yz"};
  EXPECT_EQ(first_memory(params_, ids("xyyz"), *vocabulary_)->breaks, (std::vector<bool>{true, false, false, true}));
}

TEST_F(DryRule, falls_through_the_sampler_and_leaves_log_probabilities_alone) {
  const auto backend = make_reference_backend();
  Sampler sampler(*backend, vocabulary_->size());
  const auto state = first_memory(params_, ids("abxyz ab"), *vocabulary_);
  std::vector<float> logits(static_cast<std::size_t>(vocabulary_->size()), 0.0f);
  logits[static_cast<std::size_t>(id("x"))] = 1.0f;
  logits[static_cast<std::size_t>(id("y"))] = 0.75f;
  params_.temperature = 0.0f;
  Sampled out;
  SampleRequest request{logits.data(), &params_, state.get(), {}, 0, 1, &out};
  sampler.run({&request, 1});
  EXPECT_EQ(out.token, id("y")) << "1 - 0.5 is less than 0.75";
  EXPECT_EQ(out.top[0].token, id("x"));
}

}  // namespace
}  // namespace troupe::test
