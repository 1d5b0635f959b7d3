// The line of turns that wait for pages: who stands where, who finds no place, and what those are told.
#include "runtime/admission.h"

#include <gtest/gtest.h>
#include <map>

#include "tests/runtime/pool_of.h"

namespace troupe::test {
namespace {

constexpr std::int64_t kPoolPages = 8;
constexpr TimePoint kLater{std::chrono::hours(1)};

// A pool that one turn fills. The turns that wait are admitted one by one, as each ends.
class Line : public testing::Test {
 protected:
  explicit Line(std::map<std::string, int> weights = {}) {
    admission_ = std::make_unique<Admission>(pool_, std::make_shared<PrefixIndex>(pool_, 0),
                                             *KeyWeights::of(std::move(weights)));
    push("first");
    served_.clear();
  }

  SessionId push(const std::string& key, bool background = false) {
    const SessionId session = ++last_session_;
    PageRequest request;
    request.session = session;
    request.turn = 1;
    request.key = key;
    request.prompt = std::make_shared<const std::vector<TokenId>>(3, TokenId(1));
    request.cache = std::make_shared<KvCache>(pool_);
    request.worst_case = kPoolPages * 16;
    request.background = background;
    admission_->push(std::move(request), kLater, [this, session, key](Result<PageGrant> grant) {
      if (!grant) return refused_.push_back(grant.error());
      holder_ = session;
      cache_ = grant->cache;
      served_.push_back(key);
      sessions_.push_back(session);
    });
    return session;
  }
  void push_many(const std::string& key, int count) {
    for (int i = 0; i < count; ++i) push(key);
  }
  // The turn that has the pages ends.
  void end_turn() {
    cache_.reset();
    admission_->leave(holder_, 1);
  }
  std::map<std::string, int> serve(int turns) {
    served_.clear();
    for (int i = 0; i < turns; ++i) end_turn();
    std::map<std::string, int> by_key;
    for (const std::string& key : served_) ++by_key[key];
    return by_key;
  }

  std::shared_ptr<PagePool> pool_ = pool_of(kPoolPages);
  std::unique_ptr<Admission> admission_;
  SessionId last_session_ = 0, holder_ = 0;
  std::shared_ptr<KvCache> cache_;
  std::vector<std::string> served_;
  std::vector<SessionId> sessions_;
  std::vector<Error> refused_;
};

TEST_F(Line, is_first_come_first_served_within_a_key) {
  push_many("key", 20);
  sessions_.clear();
  serve(20);
  EXPECT_TRUE(std::ranges::is_sorted(sessions_));
  EXPECT_EQ(sessions_.size(), 20u);
}

TEST_F(Line, is_not_filled_for_others_by_the_flood_of_one_key) {
  push_many("flood", 5000);
  EXPECT_EQ(admission_->waiting(), 256u);
  ASSERT_EQ(refused_.size(), 5000u - 256u);
  refused_.clear();
  push_many("another", 100);
  EXPECT_TRUE(refused_.empty());
  for (int key = 0; key < 5; ++key) push_many("flood " + std::to_string(key), 1000);
  refused_.clear();
  push("the last to come");
  EXPECT_TRUE(refused_.empty()) << refused_.front().message;
  EXPECT_LE(static_cast<std::int64_t>(admission_->waiting()), Admission::kLineLimit);
}

TEST_F(Line, puts_a_key_that_comes_beside_the_flood_and_not_behind_it) {
  push_many("flood", 200);
  push_many("modest", 5);
  const auto served = serve(11);
  EXPECT_EQ(served.at("modest"), 5);
}

TEST_F(Line, serves_equal_keys_alike_at_ten_to_one_demand) {
  for (int i = 0; i < 250; ++i) {
    push("greedy");
    if (i % 10 == 0) push_many("modest", 1);
  }
  const auto served = serve(40);
  EXPECT_NEAR(served.at("modest"), 20, 2);
}

class WeightedLine : public Line {
 protected:
  WeightedLine() : Line({{"heavy", 3}}) {}
};

TEST_F(WeightedLine, serves_keys_by_their_weights) {
  push_many("light", 200);
  push_many("heavy", 100);
  EXPECT_NEAR(serve(80).at("heavy"), 60, 6);
}

TEST_F(Line, charges_nothing_for_turns_that_left_it) {
  for (int i = 0; i < 100; ++i) admission_->leave(push("impatient"), 1);
  push_many("patient", 10);
  push("impatient");
  EXPECT_EQ(serve(3).at("impatient"), 1);
}

TEST_F(Line, lets_interactive_turns_go_before_background_ones_of_their_key_and_of_no_other) {
  const SessionId background = push("key", true);
  push("other", true);
  const SessionId interactive = push("key");
  sessions_.clear();
  serve(3);
  EXPECT_EQ(sessions_, (std::vector<SessionId>{interactive, background + 1, background}));
}

TEST_F(Line, overtakes_a_background_turn_sixteen_times_and_no_more) {
  const SessionId background = push("key", true);
  sessions_.clear();
  for (int i = 0; i < 100 && !std::ranges::count(sessions_, background); ++i) {
    push("key");
    end_turn();
  }
  EXPECT_EQ(sessions_.size(), static_cast<std::size_t>(Admission::kOvertaken) + 1);
}

TEST_F(Line, tells_who_finds_no_place_why_and_when_to_try_again) {
  push_many("key", 256);
  for (int tick = 0; tick < 400; ++tick) {
    admission_->drop_late(TimePoint(std::chrono::milliseconds(250 * tick)));
    if (tick % 2 == 1) {  // two turns a second
      end_turn();
      push("key");
    }
  }
  refused_.clear();
  push("key");
  ASSERT_EQ(refused_.size(), 1u);
  EXPECT_EQ(refused_[0].code, ErrorCode::overloaded);
  EXPECT_NEAR(static_cast<double>(refused_[0].retry_after.count()), 256 / 2, 3);
  EXPECT_NE(refused_[0].message.find("256 turns wait for KV memory, 256 of them of this key (0 of 8"),
            std::string::npos)
      << refused_[0].message;
  EXPECT_NE(refused_[0].message.find("in about " + std::to_string(refused_[0].retry_after.count()) + " s"),
            std::string::npos);
}

TEST(TurnRate, stays_within_its_bounds_whatever_it_has_seen) {
  TurnRate rate;
  EXPECT_EQ(rate.time_for(256), TurnRate::kLeast) << "nothing is known";
  for (int second = 0; second < 3600; ++second) rate.tick(TimePoint(std::chrono::seconds(second)), true);
  EXPECT_EQ(rate.time_for(256), TurnRate::kMost) << "no turn has ended for an hour";
}

TEST(TurnRate, learns_nothing_while_nobody_waits) {
  TurnRate rate;
  for (int second = 0; second < 100; ++second) {
    for (int turn = 0; turn < 4; ++turn) rate.turn_ended();
    rate.tick(TimePoint(std::chrono::seconds(second)), true);
  }
  const auto before = rate.time_for(100);
  EXPECT_NEAR(static_cast<double>(before.count()), 25.0, 1.0);
  for (int second = 100; second < 1000; ++second) rate.tick(TimePoint(std::chrono::seconds(second)), false);
  EXPECT_EQ(rate.time_for(100), before);
}

}  // namespace
}  // namespace troupe::test
