// What a draft model may not take: time for nothing, rows and pages that a session has not, and what a step only lent.
#include <gtest/gtest.h>

#include "kernels/fault.h"
#include "tests/runtime/draft_models.h"

namespace troupe::test {
namespace {

TEST_F(DraftModels, is_left_when_nothing_comes_of_its_launches) {
  learn_costs(microseconds(1'000), microseconds(100));
  const auto rounds_with = [this](RunBatch run) {
    auto engine = stub();
    std::int64_t calls = 0;
    engine.run = [this, &calls, run](std::span<Slice> batch) {
      ++calls;
      now_ += launch_takes_;
      run(batch);
    };
    DraftModel model(std::move(engine), kMost);
    begin(model, 7, {1, 2, 3});
    for (int i = 0; i < 200; ++i) round(model, 7);
    EXPECT_GT(model.spent(), Seconds(0));
    return calls;
  };
  EXPECT_LT(rounds_with([](std::span<Slice>) { throw StepFault("never"); }), 40);
  EXPECT_LT(rounds_with([](std::span<Slice> batch) { batch[0].failed = true; }), 40) << "weights that are not finite";
  EXPECT_LT(rounds_with([](std::span<Slice> batch) { batch[0].sampled.token = 99; }), 40)
      << "an end that does not come";
}

TEST_F(DraftModels, is_not_blamed_for_an_end_that_comes) {
  learn_costs(microseconds(1'000), microseconds(100));
  auto engine = stub();
  engine.run = [this](std::span<Slice> batch) {
    ++launches_;
    now_ += launch_takes_;
    batch[0].sampled.token = 99;
  };
  DraftModel model(std::move(engine), kMost);
  for (int i = 0; i < 100; ++i) {
    begin(model, 7, {1, 2, 3});
    EXPECT_TRUE(guess(model, {step(7)})->empty());
    Slice slice{.session = 7, .wants_token = true};
    slice.sampled.token = 99;
    model.learn({&slice, 1});
  }
  EXPECT_EQ(launches_, 100);
}

TEST_F(DraftModels, guesses_no_more_than_its_launch_has_rows_for) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  begin(model, 8, {4, 5, 6});
  spare_rows_ = 0;
  EXPECT_TRUE(guess(model, {step(7), step(8)})->empty());
  EXPECT_EQ(launches_, 0);
  spare_rows_ = 3;
  const auto guesses = guess(model, {step(7), step(8)});
  ASSERT_EQ(guesses->size(), 2u);
  EXPECT_EQ((*guesses)[0].tokens.size() + (*guesses)[1].tokens.size(), 3u);
  std::vector<Step> steps{step(7), step(8)};
  steps[0].tokens = {3, 6, 9, 12};
  steps[0].drafts = 3;
  steps[0].draft_odds = 0.95f;
  EXPECT_TRUE(guess(model, steps)->empty()) << "a session's own guesses want them";
}

TEST_F(DraftModels, let_go_of_a_sessions_sampler_before_its_step_runs) {
  DraftModel model(stub(), kMost);
  begin(model, 7, {1, 2, 3});
  std::weak_ptr<const LogitsProcessor> processor;
  {
    std::vector<Step> steps{step(7)};
    SamplerState state;
    state.processor = std::make_shared<const LogitsProcessor>([](std::span<float>, std::span<const TokenId>) {});
    processor = state.processor;
    steps[0].state = std::make_shared<const SamplerState>(std::move(state));
    EXPECT_EQ(guess(model, steps)->front().tokens.size(), static_cast<std::size_t>(kMost));
  }
  EXPECT_TRUE(processor.expired()) << "it lives until its turn has ended";
}

TEST_F(DraftModels, want_no_page_more_than_the_session_itself) {
  pages_ = pool_of(1);
  DraftModel model(stub(), kMost);
  begin(model, 7, Tokens(14, 3));
  std::vector<Step> steps{step(7)};
  steps[0].draft_room = 2;
  const auto guesses = guess(model, steps);
  ASSERT_FALSE(guesses->empty());
  EXPECT_EQ(guesses->front().tokens.size(), 2u);
}

}  // namespace
}  // namespace troupe::test
