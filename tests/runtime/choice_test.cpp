// The cuts and temperatures against plain forms of their published definitions, and by hand.
#include "runtime/sampling/choice.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/math.h"
#include "kernels/random.h"
#include "tests/support/random.h"
#include "tests/support/sampling.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

using test::no_cuts;

std::vector<Candidate> sorted_row(const std::vector<float>& logits) {
  std::vector<Candidate> row;
  for (float logit : logits) row.push_back({logit, static_cast<TokenId>(row.size())});
  std::ranges::stable_sort(row, [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  return row;
}

// Logits whose softmax is these shares.
std::vector<float> logits_of(const std::vector<double>& shares) {
  std::vector<float> logits;
  for (double share : shares) logits.push_back(static_cast<float>(std::log(share)));
  return logits;
}

std::vector<TokenId> left_of(Choice& choice, const std::vector<float>& logits, const SamplingParams& params,
                             float mu = 0.0f, std::int64_t position = 0) {
  std::vector<Candidate> row = sorted_row(logits);
  choice.choose(row, params, position, mu);
  std::vector<TokenId> ids;
  for (const Candidate& one : choice.left()) ids.push_back(one.id);
  return ids;
}

// One candidate as the published texts have it: a token with its probability.
struct Likely {
  TokenId id;
  double logit, p;
};

// What weighs nothing in float32 (docs/numerics.md, exp) is no candidate: at a temperature near 0, all but the best.
void softmax(std::vector<Likely>& row, double temperature) {
  std::erase_if(row, [&, best = row[0].logit](const Likely& one) { return (one.logit - best) / temperature < -87.33; });
  double total = 0.0;
  for (Likely& one : row) total += one.p = std::exp((one.logit - row[0].logit) / temperature);
  for (Likely& one : row) one.p /= total;
}

double entropy_of(const std::vector<Likely>& row) {
  double entropy = 0.0;
  for (const Likely& one : row) entropy -= one.p * std::log(one.p);
  return entropy;
}

// Meister et al. 2022: the smallest set of those with the least | -log p - H | that has the mass tau.
void typical(std::vector<Likely>& row, double tau) {
  const double entropy = entropy_of(row);
  std::ranges::sort(row, {}, [&](const Likely& one) { return std::abs(-std::log(one.p) - entropy); });
  double mass = 0.0;
  const auto enough = std::ranges::find_if(row, [&](const Likely& one) { return (mass += one.p) >= tau; });
  if (enough != row.end()) row.erase(enough + 1, row.end());
  std::ranges::sort(row, std::ranges::greater(), &Likely::logit);
}

// text-generation-webui, pull request 6335: of those at or above the threshold all but the last go.
void exclude_top_choices(std::vector<Likely>& row, double threshold) {
  double total = 0.0;
  for (const Likely& one : row) total += one.p;
  while (row.size() > 1 && row[0].p / total >= threshold && row[1].p / total >= threshold) {
    row.erase(row.begin());
  }
}

// Basu et al. 2021, algorithm 2, before the draw.
void truncate_surprising(std::vector<Likely>& row, double mu) {
  while (row.size() > 1 && -std::log2(row.back().p) > mu) row.pop_back();
}

// llama.cpp's dynamic temperature, of the probabilities at temperature 1.
double dynamic_temperature(std::vector<Likely> row, const SamplingParams& p) {
  softmax(row, 1.0);
  const double share = entropy_of(row) / std::log(static_cast<double>(row.size()));
  const double low = std::max(0.0f, p.temperature - p.dynatemp_range), high = p.temperature + p.dynatemp_range;
  return low + (high - low) * std::pow(share, static_cast<double>(p.dynatemp_exponent));
}

std::vector<Likely> published(const std::vector<float>& logits, const SamplingParams& p, float mu, bool excludes) {
  std::vector<Likely> row;
  for (const Candidate& one : sorted_row(logits)) row.push_back({one.id, one.logit, 0.0});
  softmax(row, p.dynatemp_range > 0.0f ? dynamic_temperature(row, p) : p.temperature);
  if (p.mirostat == 2) {
    truncate_surprising(row, mu);
    return row;
  }
  if (p.typical_p < 1.0f) typical(row, p.typical_p);
  double total = 0.0, running = 0.0;
  for (const Likely& one : row) total += one.p;
  std::size_t n = 0;
  while (n < row.size() && running < p.top_p * total) running += row[n++].p;
  if (p.top_p < 1.0f) row.resize(std::max<std::size_t>(n, 1));
  while (row.back().p < p.min_p * row[0].p) row.pop_back();
  if (excludes) exclude_top_choices(row, p.xtc_threshold);
  return row;
}

SamplingParams random_cuts(test::Random& random) {
  const auto one_of = [&](std::initializer_list<float> values) {
    return *(values.begin() + random.below(std::ssize(values)));
  };
  SamplingParams p = no_cuts(one_of({0.5f, 1.0f, 1.7f}));
  p.typical_p = one_of({1.0f, 0.95f, 0.5f, 0.2f, 1e-6f});
  p.top_p = one_of({1.0f, 0.9f, 0.5f});
  p.min_p = one_of({0.0f, 0.02f, 0.2f});
  p.xtc_probability = one_of({0.0f, 0.5f, 1.0f});
  p.xtc_threshold = one_of({0.0f, 0.01f, 0.1f, 0.5f, 0.7f});
  p.dynatemp_range = one_of({0.0f, 0.0f, 0.4f, 1.5f});
  p.dynatemp_exponent = one_of({1.0f, 0.5f, 2.0f, 0.0f});
  p.mirostat = random.below(4) == 0 ? 2 : 0;
  p.seed = random.next();
  return p;
}

// Random rows: no share stands within float's error of a limit, so double decides as float does.
TEST(Choice, leaves_whom_the_published_definitions_leave) {
  test::Random random(3);
  Choice choice;
  const int rounds = test::small_scale() ? 3'000 : 30'000;
  int narrowed = 0, excluded = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<float> logits = random.bells(2 + random.below(60), i % 2 == 0 ? 1.0f : 3.0f);
    const SamplingParams p = random_cuts(random);
    const float mu = 1.0f + 4.0f * std::fabs(random.signed_unit());
    const bool excludes = uniform(p.seed, 9, RandomPurpose::xtc) < p.xtc_probability;
    const std::vector<Likely> expected = published(logits, p, mu, excludes);
    std::vector<TokenId> ids;
    for (const Likely& one : expected) ids.push_back(one.id);
    const std::vector<TokenId> left = left_of(choice, logits, p, mu, 9);
    ASSERT_EQ(left, ids) << "round " << i << ": typical_p " << p.typical_p << ", top_p " << p.top_p << ", min_p "
                         << p.min_p << ", xtc " << excludes << p.xtc_threshold << ", mirostat " << p.mirostat;
    narrowed += left.size() < logits.size() ? 1 : 0;
    excluded += excludes && left[0] != sorted_row(logits)[0].id ? 1 : 0;
  }
  std::printf("%d rows: %d narrowed, %d without their best\n", rounds, narrowed, excluded);
  EXPECT_GT(narrowed, rounds / 2);
  EXPECT_GT(excluded, rounds / 20);
}

// The float arithmetic of docs/numerics.md, each sum written out.
TEST(Choice, draws_by_the_weights_that_are_left) {
  test::Random random(4);
  Choice choice;
  for (int i = 0; i < 5'000; ++i) {
    const std::vector<float> logits = random.bells(30, 2.0f);
    SamplingParams p = random_cuts(random);
    p.dynatemp_range = 0.0f;
    std::vector<Candidate> row = sorted_row(logits);
    const float best = row[0].logit / p.temperature;
    const TokenId token = choice.choose(row, p, i, 3.0f);
    float sum = 0.0f, running = 0.0f;
    for (const Candidate& one : choice.left()) sum += exp_contract(one.logit / p.temperature - best);
    const float u = uniform(p.seed, static_cast<std::uint32_t>(i), RandomPurpose::draw) * sum;
    TokenId expected = choice.left().back().id;
    for (const Candidate& one : choice.left()) {
      running += exp_contract(one.logit / p.temperature - best);
      if (running <= u) continue;
      expected = one.id;
      break;
    }
    ASSERT_EQ(token, expected);
  }
}

TEST(Choice, typical_p_takes_the_usual_before_the_best) {
  // H = 1.22 nats. Surprises 0.69, 1.61, 1.61, 2.30: nearest are the two of 0.2, then 0.5, then 0.1.
  const std::vector<float> logits = logits_of({0.5, 0.2, 0.2, 0.1});
  Choice choice;
  SamplingParams p = no_cuts();
  for (const auto& [mass, ids] :
       {std::pair(0.1f, std::vector<TokenId>{1}), std::pair(0.39f, std::vector<TokenId>{1, 2}),
        std::pair(0.41f, std::vector<TokenId>{0, 1, 2}), std::pair(0.95f, std::vector<TokenId>{0, 1, 2, 3})}) {
    p.typical_p = mass;
    EXPECT_EQ(left_of(choice, logits, p), ids) << mass;
  }
}

TEST(Choice, xtc_excludes_all_that_reach_the_threshold_but_the_last) {
  const std::vector<float> logits = logits_of({0.4, 0.3, 0.2, 0.1});
  Choice choice;
  SamplingParams p = no_cuts();
  p.xtc_probability = 1.0f;
  for (const auto& [threshold, ids] :
       {std::pair(0.15f, std::vector<TokenId>{2, 3}), std::pair(0.25f, std::vector<TokenId>{1, 2, 3}),
        std::pair(0.35f, std::vector<TokenId>{0, 1, 2, 3}), std::pair(0.05f, std::vector<TokenId>{3}),
        std::pair(0.6f, std::vector<TokenId>{0, 1, 2, 3})}) {
    p.xtc_threshold = threshold;
    EXPECT_EQ(left_of(choice, logits, p), ids) << threshold;
  }
}

TEST(Choice, xtc_excludes_as_often_as_its_probability_says_and_not_in_step_with_the_draw) {
  const std::vector<float> logits(2, 0.0f);  // excluded: token 0; else either
  Choice choice;
  SamplingParams p = no_cuts();
  p.xtc_probability = 0.25f;
  p.xtc_threshold = 0.4f;
  int excluded = 0, first = 0;
  for (p.seed = 0; p.seed < 8'000; ++p.seed) {
    std::vector<Candidate> row = sorted_row(logits);
    const TokenId token = choice.choose(row, p, 1, 0.0f);
    excluded += choice.left().size() == 1 ? 1 : 0;
    first += token == 0 ? 1 : 0;
  }
  EXPECT_NEAR(excluded, 2'000, 200);
  EXPECT_NEAR(first, 3'000, 250) << "half of the three quarters that keep both";
}

TEST(Choice, mirostat_leaves_what_surprises_no_more_than_mu_and_tells_the_surprise) {
  const std::vector<float> logits = logits_of({0.5, 0.25, 0.125, 0.125});  // 1, 2, 3 and 3 bits
  Choice choice;
  SamplingParams p = no_cuts();
  p.mirostat = 2;
  p.top_k = 1;  // have no say beside Mirostat
  p.top_p = 0.01f;
  p.typical_p = 0.01f;
  EXPECT_EQ(left_of(choice, logits, p, 0.5f), (std::vector<TokenId>{0})) << "the best stays";
  EXPECT_NEAR(choice.surprise(), 1.0f, 1e-5f) << "of the whole distribution, not of what is left";
  EXPECT_EQ(left_of(choice, logits, p, 2.1f), (std::vector<TokenId>{0, 1}));
  EXPECT_EQ(left_of(choice, logits, p, 9.0f).size(), 4u);
  p.mirostat = 0;
  left_of(choice, logits, no_cuts());
  EXPECT_EQ(choice.surprise(), 0.0f);
}

// A row of the same shares at every temperature tells the temperature by min_p's limit.
TEST(Choice, dynamic_temperature_goes_from_the_lowest_for_the_sure_to_the_highest_for_the_unsure) {
  test::Random random(5);
  Choice choice;
  SamplingParams p = no_cuts(1.0f);
  p.dynatemp_range = 0.5f;
  for (int i = 0; i < 2'000; ++i) {
    const std::vector<float> logits = random.bells(20, 0.2f + 0.01f * static_cast<float>(i % 400));
    std::vector<Likely> row;
    for (const Candidate& one : sorted_row(logits)) row.push_back({one.id, one.logit, 0.0});
    const double temperature = dynamic_temperature(row, p);
    ASSERT_GE(temperature, 0.5);
    ASSERT_LE(temperature, 1.5);
    const double second = std::exp((row[1].logit - row[0].logit) / temperature);
    p.min_p = static_cast<float>(std::min(1.0, second * 1.0001));
    ASSERT_EQ(left_of(choice, logits, p).size(), 1u);
    p.min_p = static_cast<float>(second * 0.9999);
    ASSERT_GE(left_of(choice, logits, p).size(), 2u);
  }
}

TEST(Choice, dynamic_temperature_that_reaches_zero_is_greedy) {
  Choice choice;
  SamplingParams p = no_cuts(0.3f);
  p.dynatemp_range = 0.5f;
  for (float best : {60.0f, 0.0f, -60.0f}) {
    EXPECT_EQ(left_of(choice, {best - 200.0f, best, best - 200.0f}, p), (std::vector<TokenId>{1})) << best;
  }
  EXPECT_EQ(left_of(choice, {1.0f}, p), (std::vector<TokenId>{0}));
}

}  // namespace
}  // namespace troupe
