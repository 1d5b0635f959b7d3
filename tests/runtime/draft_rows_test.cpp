// Which guesses a batch takes: those that pay.
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

#include "kernels/fault.h"
#include "runtime/isolate.h"
#include "runtime/step_queue.h"

namespace troupe {
namespace {

// A machine whose launch takes `launch` and `row` for each row, and a queue that has seen launches of many widths on
// it.
class GuessLab {
 public:
  GuessLab(double launch, double row, std::int64_t max_rows = 64)
      : launch_(launch), row_(row), queue_(max_rows), pool_(make_pool(layout_)) {
    for (int i = 0; i < 60; ++i) {
      for (int who = 0; who <= i % 12; ++who) push(static_cast<SessionId>(who), 1, 0, 0.0f);
      run();
    }
    answers_.clear();
  }

  void push(SessionId session, std::size_t known, std::int32_t drafts, float odds) {
    Step step;
    step.session = session;
    caches_.emplace_back(pool_);
    ASSERT_TRUE(caches_.back().reserve(64));
    step.cache = caches_.back().lend();
    for (std::size_t i = 0; i < known + static_cast<std::size_t>(drafts); ++i)
      step.tokens.push_back(static_cast<TokenId>(i));
    step.sampling = std::make_shared<SamplingParams>();
    step.drafts = drafts;
    step.draft_odds = odds;
    queue_.push(std::move(step), [this, session](Result<StepTokens> result) {
      ASSERT_TRUE(result);
      answers_[session] = std::move(*result);
    });
  }

  // One launch, in which `right` guesses of every slice are right. The rows of each session's slice.
  std::vector<std::int64_t> run(std::int32_t right = 0) {
    std::vector<std::int64_t> rows;
    std::int64_t all = 0;
    for (Slice& slice : queue_.gather()) {
      EXPECT_LT(slice.drafts, std::ssize(slice.tokens));
      EXPECT_EQ(std::ssize(slice.after), slice.drafts);
      slice.right = std::min(right, slice.drafts);
      rows.push_back(std::ssize(slice.tokens));
      all += rows.back();
    }
    queue_.finish(TimePoint{}, Seconds(launch_ + row_ * static_cast<double>(all)));
    if (queue_.empty()) caches_.clear();
    return rows;
  }
  bool waits() const { return !queue_.empty(); }
  StepTokens& answer(SessionId session) { return answers_.at(session); }
  StepQueue& queue() { return queue_; }

 private:
  static std::shared_ptr<PagePool> make_pool(const KvLayout& layout) {
    return std::make_shared<PagePool>(allocate_host(400 * layout.page_bytes()), layout, 400);
  }
  double launch_, row_;
  KvLayout layout_{1, 1, 16, KvType::f16};
  StepQueue queue_;
  std::shared_ptr<PagePool> pool_;
  std::deque<KvCache> caches_;
  std::map<SessionId, StepTokens> answers_;
};

using Rows = std::vector<std::int64_t>;

TEST(DraftRows, a_lone_session_verifies_all_its_good_guesses_where_rows_are_cheap) {
  GuessLab lab(2e-3, 0.1e-3);
  lab.push(1, 1, 6, 0.8f);
  EXPECT_EQ(lab.run(), Rows{7});
  EXPECT_EQ(lab.answer(1).verified, 6);
}

TEST(DraftRows, takes_no_guess_whose_odds_are_worth_less_than_its_row) {
  GuessLab lab(2e-3, 0.1e-3);  // a row costs a twentieth of what a lone token costs
  lab.push(1, 1, 6, 0.02f);
  EXPECT_EQ(lab.run(), Rows{1});
  EXPECT_EQ(lab.answer(1).verified, 0);
}

TEST(DraftRows, takes_as_many_as_are_likely_enough_together) {
  GuessLab lab(2e-3, 0.1e-3);
  lab.push(1, 1, 16, 0.5f);
  const Rows rows = lab.run();
  // 0.5^n against a row's share of a launch, which falls as tokens are gained: 0.25 is taken, 0.5^5 = 0.03 is not.
  EXPECT_GE(rows[0], 3);
  EXPECT_LE(rows[0], 5);
}

TEST(DraftRows, takes_none_where_a_crowd_makes_rows_cost_what_they_are_worth) {
  GuessLab lab(1e-3, 1e-3);
  for (SessionId who = 0; who < 12; ++who) lab.push(who, 1, 6, 0.8f);
  EXPECT_EQ(lab.run(), Rows(12, 1));
  lab.push(1, 1, 6, 0.8f);
  EXPECT_GT(lab.run()[0], 1) << "alone they pay";
}

TEST(DraftRows, prefers_the_better_guesses_of_a_crowd) {
  GuessLab lab(2e-3, 0.6e-3);
  for (SessionId who = 0; who < 8; ++who) lab.push(who, 1, 1, who < 4 ? 0.99f : 0.3f);
  EXPECT_EQ(lab.run(), (Rows{2, 2, 2, 2, 1, 1, 1, 1}));
}

TEST(DraftRows, leaves_room_for_everyones_first_row) {
  GuessLab lab(10e-3, 1e-5, 16);
  for (SessionId who = 0; who < 12; ++who) lab.push(who, 1, 6, 1.0f);
  const Rows rows = lab.run();
  EXPECT_EQ(rows.size(), 12u);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 16);
}

TEST(DraftRows, a_prompt_goes_on_beside_guesses) {
  GuessLab lab(10e-3, 1e-5, 16);
  lab.push(1, 1, 15, 1.0f);
  lab.push(2, 40, 0, 0.0f);
  Rows rows = lab.run();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_LE(rows[0] + rows[1], 16);
  while (lab.waits()) lab.run();
  EXPECT_EQ(lab.answer(2).verified, 0);
}

TEST(DraftRows, answers_with_the_tokens_of_right_guesses_and_no_more) {
  GuessLab lab(2e-3, 0.1e-3);
  lab.push(1, 1, 5, 0.9f);
  lab.push(2, 1, 0, 0.9f);
  lab.run(3);
  EXPECT_EQ(lab.answer(1).after.size(), 3u);
  EXPECT_EQ(lab.answer(1).verified, 5);
  EXPECT_TRUE(lab.answer(2).after.empty());
}

TEST(DraftRows, counts_sessions_and_not_rows_as_its_decode_width) {
  GuessLab lab(2e-3, 0.1e-3);
  lab.push(1, 1, 5, 0.9f);
  lab.queue().gather();
  EXPECT_EQ(lab.queue().decode_rows(), 1);
}

TEST(DraftRows, a_step_that_fails_is_tried_without_its_guesses) {
  GuessLab lab(2e-3, 0.1e-3);
  lab.push(1, 1, 5, 0.9f);
  const auto run = [](std::span<Slice> batch) {
    if (batch[0].drafts > 0) throw StepFault("a guess breaks the launch");
    batch[0].sampled.token = 7;
  };
  run_isolated(run, lab.queue().gather());
  lab.queue().finish(TimePoint{}, Seconds(0.001));
  EXPECT_EQ(lab.answer(1).first.token, 7);
  EXPECT_EQ(lab.answer(1).verified, 0);
}

}  // namespace
}  // namespace troupe
