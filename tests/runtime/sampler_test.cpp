// The sampler against a plain one that does every step over the whole vocabulary, at its edges, and as a distribution.
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

#include "kernels/math.h"
#include "kernels/random.h"
#include "tests/support/promise.h"
#include "tests/support/random.h"
#include "tests/support/sampling.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

using test::no_cuts;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Sampling : public ::testing::Test {
 protected:
  struct Outcome {
    Sampled sampled;
    bool impossible = false;
  };
  Outcome sample(std::vector<float> logits, const SamplingParams& params, std::int64_t position = 0,
                 const SamplerState* state = nullptr, std::span<const TokenId> banned = {},
                 std::int32_t logprobs = -1) {
    Sampler sampler(*backend_, std::ssize(logits));
    Outcome outcome;
    SampleRequest request{logits.data(), &params, state, banned, position, logprobs, &outcome.sampled};
    sampler.run({&request, 1});
    outcome.impossible = request.impossible;
    return outcome;
  }
  TokenId token(const std::vector<float>& logits, const SamplingParams& params, std::int64_t position = 0) {
    return sample(logits, params, position).sampled.token;
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
};

int count_of(const std::unordered_map<TokenId, std::int32_t>& counts, TokenId id) {
  const auto found = counts.find(id);
  return found == counts.end() ? 0 : found->second;
}

// Every rule over the whole row, in the order that sampling_params.h words, in float as docs/numerics.md says.
TokenId plain_sample(std::vector<float> logits, const SamplingParams& params, std::int64_t position,
                     const SamplerState& state, std::span<const TokenId> banned) {
  for (const auto& [id, bias] : params.logit_bias)
    logits[static_cast<std::size_t>(id)] += bias <= -100 ? -kInfinity : bias;
  std::vector<Candidate> row;
  for (TokenId id = 0; id < std::ssize(logits); ++id) {
    float& l = logits[static_cast<std::size_t>(id)];
    const int answers = count_of(state.in_answer, id);
    if (answers + count_of(state.in_prompt, id) > 0) {
      l = l > 0 ? l / params.repetition_penalty : l * params.repetition_penalty;
    }
    if (answers > 0) l = l - static_cast<float>(answers) * params.frequency_penalty - params.presence_penalty;
    if (std::ranges::count(banned, id) > 0) l = -kInfinity;
    row.push_back({l, id});
  }
  std::ranges::stable_sort(row, [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  if (params.temperature == 0.0f) return row[0].id;
  if (params.top_k > 0 && params.top_k < std::ssize(row)) row.resize(static_cast<std::size_t>(params.top_k));
  std::vector<float> weights;
  float total = 0.0f, kept = 0.0f, running = 0.0f;
  for (const Candidate& one : row) {
    weights.push_back(exp_contract(one.logit / params.temperature - row[0].logit / params.temperature));
    total += weights.back();
  }
  std::size_t n = 0;
  while (n < weights.size() && (n == 0 || running < params.top_p * total)) running += weights[n++];
  if (params.top_p == 1.0f) n = weights.size();
  while (n > 1 && weights[n - 1] < params.min_p) --n;
  for (std::size_t i = 0; i < n; ++i) kept += weights[i];
  const float u = uniform(params.seed, static_cast<std::uint32_t>(position), RandomPurpose::draw) * kept;
  running = 0.0f;
  for (std::size_t i = 0; i < n; ++i) {
    running += weights[i];
    if (running > u) return row[i].id;
  }
  return row[n - 1].id;
}

SamplingParams random_params(test::Random& random) {
  const float temperatures[] = {0.0f, 0.01f, 0.5f, 1.0f, 1.7f, 20.0f};
  const std::int32_t ks[] = {0, 1, 2, 5, 40, 199, 200, 500};
  const float ps[] = {1.0f, 0.999f, 0.9f, 0.3f, 1e-9f}, mins[] = {0.0f, 0.02f, 0.5f, 1.0f}, reps[] = {1.0f, 1.3f, 0.7f};
  const float penalties[] = {0.0f, 0.4f, 2.0f, -2.0f};
  const auto pick = [&random](const auto& list) {
    return list[static_cast<std::size_t>(random.below(std::ssize(list)))];
  };
  SamplingParams params;
  params.temperature = pick(temperatures);
  params.top_k = pick(ks);
  params.top_p = pick(ps);
  params.min_p = pick(mins);
  params.repetition_penalty = pick(reps);
  params.frequency_penalty = pick(penalties);
  params.presence_penalty = pick(penalties);
  params.seed = random.next();
  for (std::int64_t i = random.below(6); i > 0; --i) {
    params.logit_bias.emplace_back(static_cast<TokenId>(random.below(200)),
                                   random.below(3) == 0 ? -100.0f : 9.0f * random.signed_unit());
  }
  return params;
}

TEST_F(Sampling, agrees_with_the_plain_sampler_whatever_the_parameters) {
  test::Random random(7);
  const int rounds = test::small_scale() ? 2'000 : 20'000;
  for (int i = 0; i < rounds; ++i) {
    std::vector<float> logits = random.bells(200, i % 3 == 0 ? 30.0f : 3.0f);
    // Many ties: they are decided by id.
    if (i % 2 == 0) std::ranges::transform(logits, logits.begin(), [](float l) { return std::rint(l); });
    const SamplingParams params = random_params(random);
    SamplerState state;
    for (std::int64_t n = random.below(20); n > 0; --n) ++state.in_prompt[static_cast<TokenId>(random.below(200))];
    for (std::int64_t n = random.below(20); n > 0; --n) ++state.in_answer[static_cast<TokenId>(random.below(200))];
    const std::vector<TokenId> banned = {static_cast<TokenId>(random.below(200)), 3};
    const std::int64_t position = random.below(100'000);
    ASSERT_EQ(sample(logits, params, position, &state, banned).sampled.token,
              plain_sample(logits, params, position, state, banned))
        << "round " << i << ", temperature " << params.temperature << ", top_k " << params.top_k << ", top_p "
        << params.top_p << ", min_p " << params.min_p;
  }
  test::promise("C17", test::with_commas(rounds) + " draws with parameters at random are the plain sampler's");
}

TEST_F(Sampling, many_rows_at_once_give_what_each_gives_alone) {
  test::Random random(8);
  Sampler sampler(*backend_, 200);
  for (int round = 0; round < 200; ++round) {
    const auto rows = static_cast<std::size_t>(1 + random.below(9));
    std::vector<std::vector<float>> logits;
    std::vector<SamplingParams> params;
    std::vector<Sampled> together(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      logits.push_back(random.bells(200, 3.0f));
      params.push_back(random_params(random));
    }
    const std::vector<std::vector<float>> untouched = logits;
    std::vector<SampleRequest> requests;
    for (std::size_t i = 0; i < rows; ++i) {
      requests.push_back(
          {logits[i].data(), &params[i], nullptr, {}, 5, static_cast<std::int32_t>(i) - 1, &together[i]});
    }
    sampler.run(requests);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto alone = sample(untouched[i], params[i], 5, nullptr, {}, static_cast<std::int32_t>(i) - 1);
      ASSERT_EQ(together[i].token, alone.sampled.token);
      ASSERT_EQ(together[i].logprob, alone.sampled.logprob);
      ASSERT_EQ(together[i].top.size(), i == 0 ? 0 : i - 1);
      ASSERT_EQ(together[i].top.size(), alone.sampled.top.size());
    }
  }
}

// Pearson's statistic of counts against expected counts.
double chi_square(const std::vector<int>& counts, const std::vector<double>& expected) {
  double sum = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  return sum;
}

// 7 degrees of freedom: a true sampler stays below 45 but for one seed choice in ten million.
TEST_F(Sampling, draws_each_token_as_often_as_its_probability_says) {
  const std::vector<float> logits = {0.0f, 1.5f, -1.0f, 2.0f, 0.5f, 0.5f, -3.0f, 1.0f};
  const int draws = test::small_scale() ? 20'000 : 200'000;
  for (bool by_seed : {true, false}) {
    std::vector<int> counts(logits.size(), 0);
    SamplingParams params = no_cuts(0.8f);
    for (int i = 0; i < draws; ++i) {
      params.seed = by_seed ? static_cast<std::uint64_t>(i) : 1;
      ++counts[static_cast<std::size_t>(token(logits, params, by_seed ? 12 : i))];
    }
    double total = 0.0;
    for (float l : logits) total += std::exp(l / 0.8);
    std::vector<double> expected;
    for (float l : logits) expected.push_back(draws * std::exp(l / 0.8) / total);
    const double statistic = chi_square(counts, expected);
    std::printf("%d draws over %s: chi-square %.1f at 7 degrees of freedom\n", draws, by_seed ? "seeds" : "positions",
                statistic);
    EXPECT_LT(statistic, 45.0);
  }
}

TEST_F(Sampling, neighbouring_seeds_and_positions_are_independent) {
  const std::vector<float> logits = {0.0f, 0.0f, 0.0f, 0.0f};
  const int draws = test::small_scale() ? 16'000 : 160'000;
  for (bool by_seed : {true, false}) {
    std::vector<int> pairs(16, 0);
    SamplingParams params = no_cuts();
    for (int i = 0; i < draws; ++i) {
      const auto draw = [&](int n) {
        params.seed = by_seed ? static_cast<std::uint64_t>(n) : 42;
        return static_cast<std::size_t>(token(logits, params, by_seed ? 3 : n));
      };
      ++pairs[draw(2 * i) * 4 + draw(2 * i + 1)];
    }
    const double statistic = chi_square(pairs, std::vector<double>(16, draws / 16.0));
    std::printf("neighbouring %s: chi-square %.1f at 15 degrees of freedom\n", by_seed ? "seeds" : "positions",
                statistic);
    EXPECT_LT(statistic, 63.0);
  }
}

TEST_F(Sampling, greedy_takes_the_largest_and_of_equals_the_lowest_id) {
  EXPECT_EQ(token({1, 5, 2, 5}, SamplingParams::greedy()), 1);
  EXPECT_EQ(token(std::vector<float>(64, 0.25f), SamplingParams::greedy()), 0);
}

TEST_F(Sampling, extreme_temperatures_give_a_valid_token) {
  const std::vector<float> logits = {-3.0f, 8.0f, 7.9999f, 0.0f};
  for (float tiny : {1e-30f, 1e-38f, 1e-45f}) EXPECT_EQ(token(logits, no_cuts(tiny)), 1) << tiny;
  const std::vector<float> negative = {-30.0f, -8.0f, -7.0f, -9.0f};
  EXPECT_EQ(token(negative, no_cuts(1e-45f)), 2);
  std::vector<int> counts(4, 0);
  SamplingParams hot = no_cuts(1e30f);
  for (hot.seed = 0; hot.seed < 4000; ++hot.seed) ++counts[static_cast<std::size_t>(token(logits, hot))];
  for (int count : counts) EXPECT_NEAR(count, 1000, 150) << "all are equally likely";
}

TEST_F(Sampling, all_equal_logits_draw_from_everything) {
  std::vector<int> counts(8, 0);
  SamplingParams params = no_cuts(1e-30f);  // a draw all the same: equals stay equal
  for (params.seed = 0; params.seed < 800; ++params.seed)
    ++counts[static_cast<std::size_t>(token(std::vector<float>(8, 0.0f), params))];
  for (int count : counts) EXPECT_GT(count, 50);
}

TEST_F(Sampling, the_narrowest_cuts_leave_the_best_token) {
  const std::vector<float> logits = {0.0f, 1.0f, 3.0f, 2.0f};
  SamplingParams by_p = no_cuts(), by_min = no_cuts(), by_k = no_cuts();
  by_p.top_p = 1e-9f;
  by_min.min_p = 1.0f;
  by_k.top_k = 1;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    by_p.seed = by_min.seed = by_k.seed = seed;
    EXPECT_EQ(token(logits, by_p), 2);
    EXPECT_EQ(token(logits, by_min), 2);
    EXPECT_EQ(token(logits, by_k), 2);
  }
}

TEST_F(Sampling, top_k_beyond_the_vocabulary_means_all) {
  const std::vector<float> logits = {0.0f, 1.0f, 3.0f, 2.0f};
  SamplingParams all = no_cuts(), more = no_cuts();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    all.seed = more.seed = seed;
    for (std::int32_t k : {4, 5, std::numeric_limits<std::int32_t>::max()}) {
      more.top_k = k;
      EXPECT_EQ(token(logits, all), token(logits, more));
    }
  }
}

TEST_F(Sampling, a_bias_on_every_token_shifts_or_bans_them_all) {
  const std::vector<float> logits = {0.5f, 1.0f, 3.0f, 2.0f};
  SamplingParams up = no_cuts(0.0f), down = no_cuts(0.0f);
  for (TokenId id = 0; id < 4; ++id) {
    up.logit_bias.emplace_back(id, 100.0f);
    down.logit_bias.emplace_back(id, -100.0f);
  }
  EXPECT_EQ(token(logits, up), 2);
  EXPECT_TRUE(sample(logits, down).impossible);
  down.temperature = 1.0f;
  EXPECT_TRUE(sample(logits, down).impossible);
  down.logit_bias.pop_back();
  EXPECT_EQ(token(logits, down), 3) << "the only one left";
}

TEST_F(Sampling, a_row_of_nans_is_impossible_and_single_ones_are_passed_over) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float temperature : {0.0f, 1.0f}) {
    EXPECT_TRUE(sample({nan, nan, nan}, no_cuts(temperature)).impossible);
    EXPECT_EQ(token({nan, 1.0f, nan}, no_cuts(temperature)), 1);
    EXPECT_EQ(token({0.0f, kInfinity, -kInfinity}, no_cuts(temperature)), 1);
  }
}

TEST_F(Sampling, banned_tokens_never_come) {
  const TokenId end[] = {1};
  SamplingParams params = no_cuts();
  for (params.seed = 0; params.seed < 300; ++params.seed) {
    EXPECT_NE(sample({0.0f, 50.0f, 0.0f}, params, 0, nullptr, end).sampled.token, 1);
  }
  EXPECT_TRUE(sample({2.0f}, params, 0, nullptr, std::vector<TokenId>{0}).impossible);
}

TEST_F(Sampling, log_probabilities_are_of_the_raw_logits) {
  const std::vector<float> logits = {0.5f, 1.0f, 3.0f, 2.0f};
  SamplingParams params = no_cuts(0.3f);
  params.logit_bias = {{2, -100.0f}, {3, 1.0f}, {3, 2.0f}};
  const auto outcome = sample(logits, params, 0, nullptr, {}, 2);
  double total = 0.0;
  for (float l : logits) total += std::exp(static_cast<double>(l));
  EXPECT_EQ(outcome.sampled.token, 3);
  EXPECT_NEAR(outcome.sampled.logprob, 2.0 - std::log(total), 1e-6);
  ASSERT_EQ(outcome.sampled.top.size(), 2u);
  EXPECT_EQ(outcome.sampled.top[0].token, 2) << "banned, but the likeliest of the raw logits";
  EXPECT_NEAR(outcome.sampled.top[0].logprob, 3.0 - std::log(total), 1e-6);
  EXPECT_EQ(sample(logits, params, 0, nullptr, {}, 9).sampled.top.size(), 4u) << "there are no more";
  EXPECT_TRUE(sample(logits, params).sampled.top.empty());
}

TEST(SamplingParams, names_the_first_field_out_of_range) {
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const auto valid = params.validate(100);
    return valid ? std::string() : valid.error().message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& p) { p.top_k = 101; }), "") << "clipped to the vocabulary";
  EXPECT_EQ(message([](auto& p) { p.seed = ~std::uint64_t{0}; }), "");
  using Change = std::function<void(SamplingParams&)>;
  const std::pair<const char*, Change> wrong[] = {
      {"temperature", [](auto& p) { p.temperature = -0.1f; }},
      {"temperature", [&](auto& p) { p.temperature = nan; }},
      {"temperature", [](auto& p) { p.temperature = kInfinity; }},
      {"top_k", [](auto& p) { p.top_k = -1; }},
      {"top_p", [](auto& p) { p.top_p = 0.0f; }},
      {"top_p", [](auto& p) { p.top_p = 1.1f; }},
      {"min_p", [](auto& p) { p.min_p = -0.1f; }},
      {"min_p", [](auto& p) { p.min_p = 1.1f; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0.0f; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = 2.1f; }},
      {"presence_penalty", [&](auto& p) { p.presence_penalty = nan; }},
      {"dynatemp_range", [](auto& p) { p.dynatemp_range = -0.1f; }},
      {"dynatemp_exponent", [](auto& p) { p.dynatemp_exponent = kInfinity; }},
      {"typical_p", [](auto& p) { p.typical_p = 0.0f; }},
      {"typical_p", [&](auto& p) { p.typical_p = nan; }},
      {"xtc_probability", [](auto& p) { p.xtc_probability = 1.1f; }},
      {"xtc_threshold", [](auto& p) { p.xtc_threshold = -0.1f; }},
      {"dry_multiplier", [](auto& p) { p.dry_multiplier = -1.0f; }},
      {"dry_base", [](auto& p) { p.dry_base = 0.9f; }},
      {"dry_allowed_length", [](auto& p) { p.dry_allowed_length = 0; }},
      {"dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers.resize(65, "x"); }},
      {"dry_sequence_breaker", [](auto& p) { p.dry_sequence_breakers = {""}; }},
      {"dry_sequence_breaker", [](auto& p) { p.dry_sequence_breakers = {std::string(65, 'x')}; }},
      {"mirostat", [](auto& p) { p.mirostat = 1; }},
      {"mirostat_tau", [&](auto& p) { p.mirostat_tau = nan; }},
      {"mirostat_eta", [](auto& p) { p.mirostat_eta = -0.1f; }},
      {"logit_bias token",
       [](auto& p) {
         p.logit_bias = {{100, 1.0f}};
       }},
      {"logit_bias token",
       [](auto& p) {
         p.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{1, kInfinity}};
       }},
  };
  for (const auto& [field, change] : wrong) EXPECT_NE(message(change).find(field), std::string::npos) << field;
}

}  // namespace
}  // namespace troupe
