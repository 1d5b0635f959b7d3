#include "actors/batcher.h"

#include <latch>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

TEST(Batcher, fuses_all_sessions_that_decode_into_one_launch) {
  SupervisorOptions options;
  std::shared_ptr<Engine> engine;
  std::latch all_asked(1);  // the first launch waits, so that nobody is far ahead
  options.run = [&](std::span<Slice> batch) {
    all_asked.wait();
    engine->run(batch);
  };
  options.linger = std::chrono::seconds(60);
  ActorLab lab(options);
  engine = lab.shared_engine();
  constexpr int kSessions = 8, kTokens = 100;
  std::vector<SessionActor> sessions;
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < kSessions; ++i) {
    sessions.push_back(lab.open());
    expected.push_back(lab.solo(token_turn(prompt(i, 16), kTokens, static_cast<std::uint64_t>(i))));
  }
  using Pending = decltype(lab.self()->request(sessions[0], std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<Pending> pending;
  for (int i = 0; i < kSessions; ++i) {
    pending.push_back(lab.self()->request(sessions[static_cast<std::size_t>(i)], std::chrono::seconds(60), say_atom_v,
                                          token_turn(prompt(i, 16), kTokens, static_cast<std::uint64_t>(i))));
  }
  // All have their 8 pages for 16 + 100 tokens, and send their first step.
  while (lab.engine().pages()->used() < 8 * kSessions) std::this_thread::yield();
  all_asked.count_down();
  for (int i = 0; i < kSessions; ++i) {
    pending[static_cast<std::size_t>(i)].receive(
        [&](TurnEnd& end) { EXPECT_EQ(end.tokens, expected[static_cast<std::size_t>(i)]); },
        [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
  const auto stats = lab.ask<LaunchStats>(lab.host(), stats_atom_v);
  ASSERT_TRUE(stats);
  ASSERT_GT(stats->by_decode_width.size(), static_cast<std::size_t>(kSessions));
  EXPECT_GE(stats->by_decode_width[kSessions], 90u) << "most launches must hold all " << kSessions << " sessions";
  lab.stop();
  promise("C10", "at least 90 of 100 launches hold all 8 sessions");
}

TEST(Batcher, retries_a_batch_that_failed_once_and_nobody_notices) {
  std::shared_ptr<Engine> engine;
  std::atomic<int> calls{0};
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    if (++calls == 7) throw StepFault("a passing fault");
    engine->run(batch);
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  const Turn turn = token_turn(prompt(1, 20), 20);
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_GE(calls, 21);
  EXPECT_EQ(end->tokens, lab.solo(turn));
  lab.stop();
}

TEST(Batcher, lets_only_the_guilty_step_fail) {
  std::shared_ptr<Engine> engine;
  const TokenId poison = 77;  // a batch that holds a row of this token cannot run
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    for (const Slice& slice : batch) {
      if (slice.tokens.size() > 1 && slice.tokens[0] == poison) throw StepFault("poisoned");
    }
    engine->run(batch);
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  const SessionActor good = lab.open(), bad = lab.open();
  auto running = lab.self()->request(good, std::chrono::seconds(60), say_atom_v, token_turn(prompt(1, 20), 200));
  const auto failed = lab.say(bad, token_turn({poison, 5, 6}, 10));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::step_failed);
  EXPECT_EQ(failed.error().message, "poisoned");
  running.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, lab.solo(token_turn(prompt(1, 20), 200))); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  const auto after = lab.say(bad, token_turn(prompt(2, 8), 5));
  ASSERT_TRUE(after) << "the session stays usable";
  EXPECT_EQ(after->tokens, lab.solo(token_turn(prompt(2, 8), 5)));
  lab.stop();
  promise("N2", "of 2 sessions in a launch the guilty one fails; the other's 200 tokens are its own");
}

}  // namespace
}  // namespace troupe::test
