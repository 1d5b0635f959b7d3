#include "actors/batcher.h"

#include <deque>
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

// While it waits for somebody it hears of other things, which must not make it forget to look again.
TEST(Batcher, launches_without_who_stays_away_when_the_linger_is_over_whatever_it_hears_meanwhile) {
  ActorLab lab;
  const KvLayout layout{1, 1, 16, KvType::f16};
  const auto pool = std::make_shared<PagePool>(allocate_host(64 * layout.page_bytes()), layout, 64);
  std::deque<KvCache> caches;
  BatcherOptions options;
  options.run = [](std::span<Slice>) {};
  options.linger = std::chrono::milliseconds(2);
  const BatcherActor batcher = spawn_batcher(lab.system(), std::move(options));
  const auto ask = [&](SessionId session) {
    Step step;
    step.session = session;
    EXPECT_TRUE(caches.emplace_back(pool).reserve(1));
    step.cache = caches.back().lend();
    step.tokens = {1};
    step.sampling = std::make_shared<SamplingParams>();
    return lab.self()->request(batcher, std::chrono::seconds(60), step_atom_v, std::move(step));
  };
  const auto is_answered = [](auto&& pending) {
    pending.receive([](StepTokens&) {}, [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  };
  for (int round = 0; round < 20; ++round) {
    auto first = ask(1), second = ask(2);
    is_answered(first);
    is_answered(second);
    auto alone = ask(1);
    for (int i = 0; i < 10; ++i) caf::anon_send(batcher, stats_atom_v);
    is_answered(alone);
  }
  lab.self()->send_exit(batcher, caf::exit_reason::user_shutdown);
}

}  // namespace
}  // namespace troupe::test
