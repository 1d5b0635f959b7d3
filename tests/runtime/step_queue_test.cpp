#include "runtime/step_queue.h"

#include <deque>
#include <gtest/gtest.h>
#include <optional>

#include "kernels/fault.h"
#include "runtime/isolate.h"
#include "tests/support/promise.h"
#include "tests/support/random.h"

namespace troupe {
namespace {

constexpr TimePoint kStart{std::chrono::seconds(100)};
constexpr Seconds kTook{0.002};

// A pool of tiny pages, caches lent from it, and what was answered.
class QueueLab : public testing::Test {
 protected:
  QueueLab() : pool_(std::make_shared<PagePool>(allocate_host(200 * layout_.page_bytes()), layout_, 200)) {}

  void push(SessionId session, std::size_t tokens, const std::string& key = "") {
    caches_.emplace_back(pool_);
    ASSERT_TRUE(caches_.back().reserve(static_cast<std::int64_t>(tokens) + 64));
    Step step;
    step.session = session;
    step.key = key;
    step.cache = caches_.back().lend();
    step.tokens.assign(tokens, 1);
    step.sampling = std::make_shared<SamplingParams>();
    queue_.push(std::move(step), [this, session](Result<StepTokens> result) {
      answered_.push_back(session);
      if (!result) errors_[session] = result.error();
    });
  }

  std::vector<std::size_t> widths() {
    std::vector<std::size_t> rows;
    for (const Slice& slice : queue_.gather()) rows.push_back(slice.tokens.size());
    return rows;
  }
  void launch() {
    queue_.gather();
    queue_.finish(kStart, kTook);
  }

  KvLayout layout_{1, 1, 16, KvType::f16};
  std::shared_ptr<PagePool> pool_;
  std::deque<KvCache> caches_;
  StepQueue queue_{64};
  std::vector<SessionId> answered_;
  std::unordered_map<SessionId, Error> errors_;
};

TEST_F(QueueLab, starts_a_lone_callers_step_at_once) {
  push(1, 1);
  EXPECT_TRUE(queue_.ready(kStart));
  launch();
  push(1, 1);
  EXPECT_TRUE(queue_.ready(kStart)) << "everyone who was answered is back";
}

TEST_F(QueueLab, waits_for_those_who_were_answered_but_not_longer_than_the_linger) {
  push(1, 1);
  push(2, 1);
  launch();
  push(1, 1);
  EXPECT_FALSE(queue_.ready(kStart)) << "session 2 was answered and is not back";
  EXPECT_TRUE(queue_.ready(kStart + StepQueue::kLinger));
  queue_.leave(2);
  EXPECT_TRUE(queue_.ready(kStart)) << "it said that it leaves";
}

TEST_F(QueueLab, lingers_longer_after_a_long_launch) {
  push(1, 1);
  push(2, 1);
  queue_.gather();
  queue_.finish(kStart, Seconds(0.064));
  push(1, 1);
  EXPECT_FALSE(queue_.ready(kStart + std::chrono::milliseconds(3)));
  EXPECT_TRUE(queue_.ready(kStart + std::chrono::milliseconds(4)));
}

TEST_F(QueueLab, does_not_wait_for_a_stranger) {
  push(1, 1);
  launch();
  push(9, 1);
  EXPECT_FALSE(queue_.ready(kStart)) << "session 1 is still waited for";
  push(1, 1);
  EXPECT_TRUE(queue_.ready(kStart));
  EXPECT_EQ(widths().size(), 2u);
  test::promise("C9", "who was not answered by the last launch is waited for by none");
}

TEST_F(QueueLab, takes_decode_rows_first_and_prefill_rows_for_what_is_left) {
  push(1, 100);
  push(2, 1);
  push(3, 1);
  const auto rows = widths();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], 1u);
  EXPECT_EQ(rows[1], 1u);
  EXPECT_EQ(rows[2], 48u) << "50 rows of 2 ms fit 100 ms while the machine's speed is not known";
  EXPECT_EQ(queue_.decode_rows(), 2);
}

TEST_F(QueueLab, answers_a_long_prompt_once_after_as_many_launches_as_it_takes) {
  push(1, 150);
  int launches = 0;
  while (answered_.empty()) {
    const auto batch = queue_.gather();
    ASSERT_EQ(batch.size(), 1u);
    EXPECT_EQ(batch[0].wants_token, batch[0].position + static_cast<std::int64_t>(batch[0].tokens.size()) == 150);
    queue_.finish(kStart, kTook);
    ++launches;
  }
  EXPECT_EQ(launches, 3) << "64 + 64 + 22 rows";
  EXPECT_TRUE(queue_.empty());
}

TEST_F(QueueLab, always_takes_a_prefill_row_however_slow_the_machine_is) {
  push(1, 100);
  queue_.gather();
  queue_.finish(kStart, Seconds(500));
  push(2, 1);
  EXPECT_EQ(widths(), (std::vector<std::size_t>{1, 1}));
}

TEST_F(QueueLab, serves_keys_fairly_and_the_oldest_first_within_one) {
  push(1, 64, "greedy");
  push(2, 64, "greedy");
  push(3, 64, "modest");
  launch();  // the greedy key's first step
  queue_.gather();
  queue_.finish(kStart, kTook);
  EXPECT_EQ(answered_, (std::vector<SessionId>{1, 3})) << "the modest key comes before the greedy one's second step";
}

TEST_F(QueueLab, drops_what_was_revoked_and_says_so) {
  push(1, 1);
  push(2, 1);
  caches_[0].revoke();
  EXPECT_EQ(widths().size(), 1u);
  ASSERT_TRUE(errors_.contains(1));
  EXPECT_EQ(errors_[1].code, ErrorCode::cancelled);
}

TEST_F(QueueLab, answers_a_failed_slice_with_its_sentence_and_the_others_with_tokens) {
  push(1, 1);
  push(2, 1);
  const auto batch = queue_.gather();
  batch[0].failed = true;
  batch[0].failure = "not finite";
  queue_.finish(kStart, kTook);
  EXPECT_EQ(errors_.at(1).message, "not finite");
  EXPECT_FALSE(errors_.contains(2));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(QueueLab, gives_the_pages_back_before_it_answers) {
  push(1, 1);
  caches_.clear();  // the session died: only the step holds the pages
  EXPECT_GT(pool_->used(), 0);
  launch();
  EXPECT_EQ(pool_->used(), 0);
}

// -- run_isolated ---------------------------------------------------------------------------------------------------

std::vector<Slice> slices(std::size_t count) {
  std::vector<Slice> batch(count);
  for (std::size_t i = 0; i < count; ++i) batch[i].position = static_cast<std::int64_t>(i);
  return batch;
}

TEST(RunIsolated, runs_a_good_batch_once) {
  int calls = 0;
  auto batch = slices(3);
  run_isolated([&](std::span<Slice>) { ++calls; }, batch);
  EXPECT_EQ(calls, 1);
}

TEST(RunIsolated, tries_a_failed_batch_again_whole_before_it_looks_for_the_guilty) {
  std::vector<std::size_t> widths;
  auto batch = slices(3);
  run_isolated(
      [&](std::span<Slice> now) {
        widths.push_back(now.size());
        if (widths.size() == 1) throw StepFault("passing");
      },
      batch);
  EXPECT_EQ(widths, (std::vector<std::size_t>{3, 3}));
  for (const Slice& slice : batch) EXPECT_FALSE(slice.failed);
}

TEST(RunIsolated, marks_only_the_guilty_slice) {
  auto batch = slices(4);
  run_isolated(
      [](std::span<Slice> now) {
        for (const Slice& slice : now) {
          if (slice.position == 2) throw StepFault("the third");
        }
        for (Slice& slice : now) slice.sampled.token = 5;
      },
      batch);
  for (const Slice& slice : batch) {
    EXPECT_EQ(slice.failed, slice.position == 2);
    EXPECT_EQ(slice.sampled.token, slice.position == 2 ? -1 : 5);
  }
  EXPECT_EQ(batch[2].failure, "the third");
}

TEST(RunIsolated, lets_every_other_exception_through) {
  auto batch = slices(2);
  EXPECT_THROW(run_isolated([](std::span<Slice>) { throw DeviceFault("gone"); }, batch), DeviceFault);
}

}  // namespace
}  // namespace troupe
