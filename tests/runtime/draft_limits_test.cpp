// What a draft model may not take: time for nothing, rows and pages that a session has not, and what a step only lent.
#include <gtest/gtest.h>

#include "kernels/fault.h"
#include "tests/runtime/draft_models.h"

namespace troupe::test {
namespace {

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

}  // namespace
}  // namespace troupe::test
