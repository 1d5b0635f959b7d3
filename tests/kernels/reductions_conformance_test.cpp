// top_candidates and log_sum_exp of every backend against the contract's order and the reference's bits.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "tests/kernels/backend_lab.h"

namespace troupe::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Logits with many ties, so that the order among equals shows.
std::vector<float> tied_logits(std::int64_t count, Random& random) {
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& logit : logits) logit = static_cast<float>(random.below(count / 3 + 2)) * 0.25f - 3.0f;
  return logits;
}

// The contract in one line: by logit, the largest first; equal ones by lower id; NaN last.
std::vector<Candidate> sorted(const std::vector<float>& logits) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) all.push_back({logits[i], static_cast<std::int32_t>(i)});
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (std::isnan(a.logit) || std::isnan(b.logit)) return !std::isnan(a.logit) && std::isnan(b.logit);
    return a.logit > b.logit;
  });
  return all;
}

void expect_top(Backend& backend, const std::string& name, const std::vector<float>& logits) {
  const std::vector<Candidate> all = sorted(logits);
  const auto vocabulary = static_cast<std::int64_t>(logits.size());
  for (std::int64_t count : {std::int64_t{1}, std::int64_t{2}, std::int64_t{40}, std::int64_t{256}, vocabulary}) {
    if (count > vocabulary) continue;
    std::vector<Candidate> top(static_cast<std::size_t>(count) + 1, Candidate{-7.0f, -7});
    const TopRequest request{logits.data(), vocabulary, count, top.data()};
    backend.top_candidates({&request, 1});
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      ASSERT_EQ(top[i].id, all[i].id) << name << ", place " << i << " of " << count << " of " << vocabulary;
      ASSERT_EQ(first_difference({&top[i].logit, 1}, {&all[i].logit, 1}), -1) << name << ", place " << i;
    }
    ASSERT_EQ(top.back().id, -7) << name << " wrote outside";
  }
}

template <class Visit>
void for_all_backends(Visit&& visit) {
  visit(Lab::get().reference(), std::string("reference"));
  for (NamedBackend& path : Lab::get().paths()) visit(*path.backend, path.name);
}

TEST(ReductionsConformance, candidates_come_in_the_contracts_order) {
  for_all_backends([](Backend& backend, const std::string& name) {
    Random random(21);
    for (std::int64_t vocabulary : {1, 2, 15, 16, 17, 63, 64, 65, 1000, 49152}) {
      expect_top(backend, name, tied_logits(vocabulary, random));
      expect_top(backend, name, random.bells(vocabulary));
    }
  });
}

TEST(ReductionsConformance, candidates_with_nan_infinity_and_signed_zeros) {
  for_all_backends([](Backend& backend, const std::string& name) {
    Random random(22);
    std::vector<float> logits = random.bells(333);
    for (std::size_t i = 0; i < 333; i += 7) logits[i] = kNan;
    for (std::size_t i = 3; i < 333; i += 11) logits[i] = -kInfinity;
    logits[100] = kInfinity;
    expect_top(backend, name, logits);
    expect_top(backend, name, std::vector<float>(100, -kInfinity));
    expect_top(backend, name, std::vector<float>(100, kNan));
    std::vector<float> zeros(100, -0.0f);
    zeros[50] = 0.0f;
    expect_top(backend, name, zeros);
    std::vector<float> one_number(70, kNan);
    one_number[69] = -kInfinity;
    expect_top(backend, name, one_number);
  });
}

TEST(ReductionsConformance, rising_and_falling_logits_are_the_worst_cases_of_a_heap) {
  for_all_backends([](Backend& backend, const std::string& name) {
    std::vector<float> rising(3000), falling(3000);
    for (std::size_t i = 0; i < rising.size(); ++i) {
      rising[i] = static_cast<float>(i);
      falling[i] = -static_cast<float>(i);
    }
    expect_top(backend, name, rising);
    expect_top(backend, name, falling);
  });
}

TEST(ReductionsConformance, log_sum_exp_has_the_references_bits_and_the_right_value) {
  Random random(23);
  for (std::int64_t vocabulary : {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 49152}) {
    const std::vector<float> logits = random.bells(vocabulary, 5.0f);
    double exact = 0.0;
    for (float logit : logits) exact += std::exp(static_cast<double>(logit));
    exact = std::log(exact);
    float expected = 0.0f;
    const LogSumRequest wanted{logits.data(), vocabulary, &expected};
    Lab::get().reference().log_sum_exp({&wanted, 1});
    EXPECT_NEAR(expected, exact, 2e-6 * std::max(1.0, std::fabs(exact)));
    for (NamedBackend& path : Lab::get().paths()) {
      float actual = 0.0f;
      const LogSumRequest request{logits.data(), vocabulary, &actual};
      path.backend->log_sum_exp({&request, 1});
      EXPECT_EQ(first_difference({&expected, 1}, {&actual, 1}), -1) << path.name << ", " << vocabulary;
    }
  }
}

TEST(ReductionsConformance, log_sum_exp_of_extreme_rows) {
  std::vector<float> far(200, -1e30f), banned(200, -kInfinity), huge(200, 3e38f), with_nan(200, 1.0f);
  far[77] = 1e30f;
  banned[3] = -2.0f;
  with_nan[120] = kNan;
  const std::vector<std::vector<float>> rows{far, banned, huge, with_nan, std::vector<float>(200, -kInfinity)};
  std::vector<float> expected(rows.size()), actual(rows.size());
  const auto run = [&](Backend& backend, std::vector<float>& out) {
    std::vector<LogSumRequest> requests;
    for (std::size_t i = 0; i < rows.size(); ++i) requests.push_back({rows[i].data(), 200, &out[i]});
    backend.log_sum_exp(requests);
  };
  run(Lab::get().reference(), expected);
  EXPECT_EQ(expected[0], 1e30f);
  EXPECT_EQ(expected[1], -2.0f);
  EXPECT_TRUE(std::isnan(expected[3]));
  for (NamedBackend& path : Lab::get().paths()) {
    run(*path.backend, actual);
    EXPECT_EQ(first_difference(expected, actual), -1) << path.name;
  }
}

TEST(ReductionsConformance, many_requests_at_once_do_not_mix) {
  Random random(24);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 17; ++i) rows.push_back(tied_logits(500 + i, random));
  for_all_backends([&](Backend& backend, const std::string& name) {
    std::vector<std::vector<Candidate>> tops(rows.size());
    std::vector<TopRequest> requests;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      tops[i].resize(1 + i % 5 * 9);
      requests.push_back({rows[i].data(), static_cast<std::int64_t>(rows[i].size()),
                          static_cast<std::int64_t>(tops[i].size()), tops[i].data()});
    }
    backend.top_candidates(requests);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<Candidate> all = sorted(rows[i]);
      for (std::size_t j = 0; j < tops[i].size(); ++j) ASSERT_EQ(tops[i][j].id, all[j].id) << name << ", request " << i;
    }
  });
}

}  // namespace
}  // namespace troupe::test
