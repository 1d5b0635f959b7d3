#include "runtime/prompt_lookup.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace troupe {
namespace {

using Tokens = std::vector<TokenId>;

Tokens guess(PromptLookup& lookup, const Tokens& history, std::int64_t most = 16) {
  const auto guessed = lookup.guess(history, most);
  return {guessed.begin(), guessed.end()};
}

// Every length, the longest first; every place, the newest first.
Tokens plain_guess(const Tokens& history, std::int64_t most) {
  const auto length = std::ssize(history);
  for (std::int64_t n = PromptLookup::kLongest; n >= PromptLookup::kShortest; --n) {
    for (std::int64_t begin = length - 1 - n; begin >= 0; --begin) {
      if (!std::equal(history.end() - n, history.end(), history.begin() + begin)) continue;
      const auto from = history.begin() + begin + n;
      return {from, from + std::min<std::int64_t>(most, history.end() - from)};
    }
  }
  return {};
}

TEST(PromptLookup, guesses_what_followed_when_the_same_was_said_before) {
  PromptLookup lookup;
  EXPECT_EQ(guess(lookup, {7, 1, 2, 3, 4, 9, 1, 2}), (Tokens{3, 4, 9, 1, 2}));
  EXPECT_EQ(guess(lookup, {7, 1, 2, 3, 4, 9, 1, 2}, 2), (Tokens{3, 4}));
}

TEST(PromptLookup, guesses_nothing_behind_what_is_new_or_one_token_long) {
  PromptLookup lookup;
  EXPECT_EQ(guess(lookup, {}), Tokens());
  EXPECT_EQ(guess(lookup, {1}), Tokens());
  EXPECT_EQ(guess(lookup, {1, 2, 3, 4, 5}), Tokens());
  EXPECT_EQ(guess(lookup, {1, 2, 3, 9, 2}), Tokens()) << "one token alone says too little";
  EXPECT_EQ(guess(lookup, {1, 2, 3, 1, 2}, 0), Tokens());
}

TEST(PromptLookup, prefers_the_longest_match_and_of_those_the_newest) {
  PromptLookup lookup;
  EXPECT_EQ(guess(lookup, {5, 1, 2, 70, 1, 2, 80, 5, 1, 2}, 1), (Tokens{70}));
  EXPECT_EQ(guess(lookup, {1, 2, 70, 1, 2, 80, 5, 1, 2}, 1), (Tokens{80}));
}

TEST(PromptLookup, is_brute_force_over_random_histories) {
  test::Random random(1);
  PromptLookup lookup;
  int guessed = 0;
  for (int i = 0; i < 20'000; ++i) {
    Tokens history(static_cast<std::size_t>(random.below(40)));
    for (TokenId& token : history) token = static_cast<TokenId>(random.below(3));
    const std::int64_t most = random.below(6);
    const Tokens expected = most == 0 ? Tokens() : plain_guess(history, most);
    ASSERT_EQ(guess(lookup, history, most), expected);
    guessed += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(guessed, 10'000);
}

TEST(PromptLookup, looks_back_only_so_far) {
  PromptLookup lookup;
  Tokens history{-1, -2, -3};
  for (TokenId token = 0; token < PromptLookup::kReach - 4; ++token) history.push_back(token);
  history.insert(history.end(), {-1, -2});
  EXPECT_EQ(guess(lookup, history, 1), (Tokens{-3}));
  history.insert(history.end() - 2, {-4, -5});
  EXPECT_EQ(guess(lookup, history, 1), Tokens());
}

TEST(PromptLookup, learns_how_often_it_is_right_from_guesses_that_were_only_made_too) {
  PromptLookup lookup;
  const Tokens history{1, 2, 3, 1, 2};
  lookup.guess(history, 4);
  EXPECT_FLOAT_EQ(lookup.odds(), 0.5f) << "nothing is known yet";
  for (int i = 0; i < 50; ++i) {
    lookup.guess(history, 4);
    lookup.learn(3, {});
  }
  EXPECT_GT(lookup.odds(), 0.9f);
  for (int i = 0; i < 100; ++i) {
    lookup.guess(history, 4);
    lookup.learn(8, {});
  }
  EXPECT_LT(lookup.odds(), 0.1f);
}

TEST(PromptLookup, counts_each_guess_that_was_computed_up_to_the_first_wrong_one) {
  PromptLookup lookup;
  const Tokens history{1, 2, 3, 1, 2};
  lookup.guess(history, 4);
  lookup.learn(3, std::vector<Sampled>{{.token = 1}, {.token = 9}});  // right, right, wrong: two of three
  EXPECT_NEAR(lookup.odds(), 3.0f / 5.0f, 0.02f);
}

TEST(PromptLookup, keeps_its_record_by_the_length_of_what_matched) {
  PromptLookup lookup;
  for (int i = 0; i < 50; ++i) {
    lookup.guess(Tokens{1, 2, 3, 1, 2}, 4);
    lookup.learn(9, {});
  }
  lookup.guess(Tokens{0, 1, 2, 3, 0, 1, 2}, 4);
  EXPECT_FLOAT_EQ(lookup.odds(), 0.5f);
}

}  // namespace
}  // namespace troupe
