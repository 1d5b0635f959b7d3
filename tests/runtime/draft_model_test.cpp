// A draft model's guesses: whom it guesses for, how far, what of it is computed, and what becomes of its failures.
#include "runtime/draft_model.h"

#include <gtest/gtest.h>

#include "kernels/fault.h"
#include "tests/runtime/draft_models.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/cut_model.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tokens.h"

namespace troupe::test {
namespace {

TEST_F(DraftModels, guesses_as_far_as_it_may_where_that_is_cheap_and_right) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 20; ++i) round(model, 7);
  const std::int64_t before = launches_;
  EXPECT_EQ(round(model, 7), kMost);
  EXPECT_EQ(launches_ - before, kMost) << "one token a launch";
  EXPECT_GT(model.spent(), Seconds(0));
}

TEST_F(DraftModels, computes_every_token_once_and_wrong_guesses_beside_them) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 10; ++i) round(model, 7);
  EXPECT_LE(rows_, std::ssize(said_[7]));
}

TEST_F(DraftModels, is_tried_and_then_left_where_its_launches_cost_more_than_they_give) {
  launch_takes_ = microseconds(50'000);
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 200; ++i) round(model, 7);
  EXPECT_EQ(launches_, DraftModel::kTries);
}

TEST_F(DraftModels, says_of_a_try_that_it_is_to_be_verified) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  EXPECT_EQ(guess(model, {step(7)})->front().odds, 1.0f);
  for (int i = 0; i < 4; ++i) round(model, 7);
  const float odds = guess(model, {step(7)})->front().odds;
  EXPECT_LT(odds, 1.0f);
  EXPECT_GT(odds, 0.8f);
}

TEST_F(DraftModels, is_not_judged_by_its_first_launch) {
  fault_ = [this] { launch_takes_ = microseconds(launches_ == 1 ? 1'000'000 : 100); };
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  std::int64_t guesses = 0;
  for (int i = 0; i < 20; ++i) guesses += round(model, 7);
  EXPECT_GE(guesses, 19 * kMost);
}

TEST_F(DraftModels, is_asked_again_when_it_may_have_become_cheap) {
  launch_takes_ = microseconds(50'000);
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 100; ++i) round(model, 7);
  launch_takes_ = microseconds(100);
  std::int64_t rounds = 0;
  while (rounds < 20'000 && round(model, 7) < kMost) {
    if (said_[7].size() > 150) begin(model, 7, {1, 2, 3});
    ++rounds;
  }
  EXPECT_LT(rounds, 8 * DraftModel::kPause) << "nobody noticed";
}

TEST_F(DraftModels, is_left_in_a_crowd_whose_rows_cost_what_they_are_worth) {
  learn_costs(microseconds(0), microseconds(1'000));
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 200; ++i) round(model, 7);
  EXPECT_EQ(launches_, DraftModel::kTries);
}

TEST_F(DraftModels, is_left_when_it_is_wrong_and_tried_again_now_and_then) {
  wrong_ = true;
  learn_costs(microseconds(1'000), microseconds(100));
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  std::int64_t rounds = 0;
  for (int i = 0; i < 200; ++i) rounds += round(model, 7) > 0 ? 1 : 0;
  EXPECT_LT(rounds, 40);
  wrong_ = false;
  rounds = 0;
  for (int i = 0; i < 2'000 && rounds < 100; ++i) {
    if (said_[7].size() > 150) begin(model, 7, {1, 2, 3});
    rounds += round(model, 7) > 0 ? 1 : 0;
  }
  EXPECT_EQ(rounds, 100) << "it is right now, and nobody noticed";
}

TEST_F(DraftModels, guesses_for_all_sessions_in_the_same_launches) {
  DraftModel model(stub(), kMost);
  std::vector<Step> steps;
  for (SessionId session = 1; session <= 5; ++session) {
    begin(model, session, {static_cast<TokenId>(session), 2, 3});
    steps.push_back(step(session));
  }
  ASSERT_TRUE(guess(model, steps));
  const std::int64_t before = launches_;
  const auto guesses = guess(model, steps);
  ASSERT_TRUE(guesses);
  ASSERT_EQ(guesses->size(), 5u);
  for (const auto& guess : *guesses) {
    Tokens said = said_[guess.session];
    for (TokenId token : guess.tokens) {
      EXPECT_EQ(token, next_of(said));
      said.push_back(token);
    }
  }
  EXPECT_LE(launches_ - before, kMost);
}

TEST_F(DraftModels, goes_further_for_those_of_whom_it_is_right) {
  wrong_session_ = 8;
  learn_costs(microseconds(1'000), microseconds(100));
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  begin(model, 8, {4, 5, 6});
  bool parted = false;
  for (int i = 0; i < 12; ++i) {
    const std::vector<Step> steps{step(7), step(8)};
    const auto guesses = guess(model, steps);
    ASSERT_TRUE(guesses);
    std::map<SessionId, std::int64_t> counts;
    std::vector<Slice> verified;
    for (const auto& one : *guesses) {
      counts[one.session] = std::ssize(one.tokens);
      const auto drafts = static_cast<std::int32_t>(one.tokens.size());
      verified.push_back({.session = one.session, .drafts = drafts, .right = one.session == 7 ? drafts : 0});
    }
    model.learn(verified);
    parted = parted || (counts[8] > 0 && counts[8] < counts[7]);
  }
  EXPECT_TRUE(parted);
}

TEST_F(DraftModels, guesses_nothing_for_a_session_whose_past_was_never_told) {
  DraftModel model(stub(), kMost);
  said_[7] = {1, 2, 3};
  model.arrived(step(7));
  EXPECT_TRUE(guess(model, {step(7)})->empty());
  EXPECT_EQ(launches_, 0);
  begin(model, 7, {1, 2, 3});
  said_[7] = {1, 2, 3, 4, 5, 6};
  model.arrived(step(7));
  EXPECT_TRUE(guess(model, {step(7)})->empty()) << "it goes on where it was not";
}

TEST_F(DraftModels, leaves_a_sessions_own_guesses_where_they_are_as_good) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  std::vector<Step> steps{step(7)};
  steps[0].tokens = {3, 6};
  steps[0].drafts = 1;
  steps[0].draft_odds = 0.95f;
  EXPECT_TRUE(guess(model, steps)->empty());
  steps[0].draft_odds = 0.1f;
  EXPECT_FALSE(guess(model, steps)->empty());
}

TEST_F(DraftModels, guesses_no_more_than_there_is_room_for_and_nothing_behind_an_end) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  std::vector<Step> steps{step(7)};
  steps[0].draft_room = 0;
  EXPECT_TRUE(guess(model, steps)->empty());
  steps[0].draft_room = 1;
  EXPECT_EQ(guess(model, steps)->front().tokens.size(), 1u);
  DraftModel narrow(stub(4), kMost);
  begin(narrow, 8, {1, 2, 3});
  EXPECT_EQ(guess(narrow, {step(8)})->front().tokens.size(), 1u) << "its own context holds no more";
  auto ends = stub();
  ends.vocabulary = std::make_shared<Vocabulary>(letters({"a", "b", "c", "d"}));
  ends.run = [](std::span<Slice> batch) { batch[0].sampled.token = 3; };
  DraftModel ending(std::move(ends), kMost);
  begin(ending, 9, {1, 2});
  EXPECT_TRUE(guess(ending, {step(9)})->empty());
}

TEST_F(DraftModels, catches_up_with_a_long_prompt_in_portions) {
  DraftModel model(stub(), kMost);
  begin(model, 7, Tokens(200, 5));
  std::int64_t rounds = 0;
  while (guess(model, {step(7)})->empty()) {
    ++rounds;
    ASSERT_LE(rows_, rounds * DraftModel::kCatchUp);
    ASSERT_LT(rounds, 10);
  }
  EXPECT_EQ(rounds, 200 / DraftModel::kCatchUp);
}

TEST_F(DraftModels, catches_up_with_one_long_prompt_before_the_next_whoever_comes_first) {
  DraftModel model(stub(), kMost);
  begin(model, 7, Tokens(200, 5));
  begin(model, 8, Tokens(200, 6));
  std::int64_t rounds = 0;
  for (bool none = true; none; ++rounds) {
    ASSERT_LT(rounds, 10);
    const bool turned = rounds % 2 == 1;
    none = guess(model, {step(turned ? 8 : 7), step(turned ? 7 : 8)})->empty();
  }
  EXPECT_EQ(rounds, 1 + 200 / DraftModel::kCatchUp);
}

TEST_F(DraftModels, that_fail_in_a_step_keep_the_guesses_so_far_and_go_on) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  for (int i = 0; i < 20; ++i) round(model, 7);
  fault_ = [this, left = 2]() mutable {
    if (left-- == 0) throw StepFault("not now");
  };
  EXPECT_EQ(round(model, 7), 2);
  fault_ = {};
  EXPECT_EQ(round(model, 7), kMost);
}

TEST_F(DraftModels, on_a_device_that_fails_say_why) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  fault_ = [] { throw DeviceFault("the device is gone"); };
  const auto guesses = guess(model, {step(7)});
  ASSERT_FALSE(guesses);
  EXPECT_EQ(guesses.error().message, "the device is gone");
}

TEST_F(DraftModels, with_too_few_pages_guess_for_fewer) {
  pages_ = pool_of(2);
  DraftModel model(stub(), kMost);
  std::vector<Step> steps;
  for (SessionId session = 1; session <= 5; ++session) {
    begin(model, session, Tokens(10, static_cast<TokenId>(session)));
    steps.push_back(step(session));
  }
  EXPECT_EQ(guess(model, steps)->size(), 2u);
}

TEST(DraftVocabulary, must_be_the_models_own) {
  EXPECT_TRUE(same_tokens(letters({"a", "b", "c"}), letters({"a", "b", "c"})));
  const auto smaller = same_tokens(letters({"a", "b"}), letters({"a", "b", "c"}));
  ASSERT_FALSE(smaller);
  EXPECT_NE(smaller.error().message.find("has 2 tokens and the model's 3"), std::string::npos);
  const auto other = same_tokens(letters({"a", "x", "c"}), letters({"a", "b", "c"}));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("token 1 is 'x' and the model's 'b'"), std::string::npos);
}

TEST(DraftEngines, share_the_backend_of_the_model_that_they_guess_for) {
  const ScratchFolder folder;
  TinyModel model = tiny_model(DType::q4_0);
  model.layers = 3;
  const std::string path = write_tiny_model(model, folder.file("model.gguf"));
  const std::string cut = write_cut_model(path, 1, folder.file("cut.gguf"));
  const auto target = open_engine(path, tiny_options({"auto", 2}));
  Random random(3);
  const auto text = random_tokens(random, 60, target->shape().vocabulary);
  const auto expected = all_logits(*target, text);
  const auto draft = open_draft(*target, cut);
  ASSERT_TRUE(draft) << draft.error().message;
  EXPECT_EQ((*draft)->shape().layers, 1);
  EXPECT_EQ((*draft)->pages()->total(), target->pages()->total());
  const auto alone = open_engine(cut, tiny_options({"auto", 2}));
  EXPECT_EQ(all_logits(**draft, text), all_logits(*alone, text));
  EXPECT_EQ(all_logits(*target, text), expected) << "the one changed the other";

  EXPECT_FALSE(open_draft(*target, folder.file("nowhere.gguf")));
  model.vocab += 16;
  const std::string other = write_tiny_model(model, folder.file("other.gguf"));
  const auto refused = open_draft(*target, other);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(other)) << refused.error().message;
}

}  // namespace
}  // namespace troupe::test
