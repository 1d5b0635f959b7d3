// A reader that stands still: its session waits with what it has, and the others go on as if it were not there.
#include <atomic>
#include <iostream>

#include "tests/actors/actor_lab.h"
#include "tests/support/resident.h"

namespace troupe::test {
namespace {

constexpr int kOthers = 8;
constexpr int kAnswer = 900;

TEST(Backpressure, a_reader_that_stands_still_costs_nothing_over_a_hundred_thousand_steps_of_others) {
  EngineOptions engine_options = lab_options();
  engine_options.kv_memory = std::uint64_t{64} << 20;
  SupervisorOptions options;
  options.prefix_memory = 0;
  ActorLab lab(options, engine_options);
  Turn turn = token_turn(prompt(1, 20), 200);
  turn.credit = 5;
  std::atomic<int> deltas{0};
  const SinkActor sink = lab.system().spawn(
      [&](SinkActor::pointer) -> SinkActor::behavior_type { return {[&](const TextDelta&) { ++deltas; }}; });
  const SessionActor stalled = lab.open();
  auto pending = lab.self()->request(stalled, std::chrono::seconds(300), say_atom_v, turn, sink);
  while (deltas < 5) std::this_thread::yield();

  const int rounds = small_scale() ? 2 : 14;
  std::vector<TokenId> expected[kOthers];
  double settled = 0;
  std::int64_t steps = 0, pages = 0;
  for (int round = 0; round < rounds; ++round) {
    using Pending = decltype(lab.self()->request(stalled, std::chrono::seconds(300), say_atom_v, Turn()));
    std::vector<SessionActor> sessions;
    std::vector<Pending> answers;
    for (int i = 0; i < kOthers; ++i) {
      sessions.push_back(lab.open());
      answers.push_back(lab.self()->request(sessions.back(), std::chrono::seconds(300), say_atom_v,
                                            token_turn(prompt(10 + i, 10), kAnswer)));
    }
    for (int i = 0; i < kOthers; ++i) {
      answers[static_cast<std::size_t>(i)].receive(
          [&](TurnEnd& end) {
            steps += std::ssize(end.tokens);
            if (round == 0) expected[i] = end.tokens;
            EXPECT_EQ(end.tokens, expected[i]);
          },
          [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
    }
    for (const SessionActor& session : sessions) caf::anon_send(session, close_atom_v);
    while (lab.describe().sessions > 1) std::this_thread::yield();
    EXPECT_EQ(deltas, 5) << "a sink without credit must get nothing";
    if (round == 0) settled = resident_kilobytes(), pages = lab.engine().pages()->used();
    EXPECT_EQ(lab.engine().pages()->used(), pages) << "its own, and no others are left";
  }
  const double grown = resident_kilobytes() - settled;
  std::cout << steps << " steps beside it, memory grew by " << grown << " KB\n";
  EXPECT_TRUE(!memory_counts() || grown < 1024);
  for (int i = 0; i < kOthers; ++i) EXPECT_EQ(expected[i], lab.solo(token_turn(prompt(10 + i, 10), kAnswer)));

  lab.self()->send(stalled, credit_atom_v, std::int32_t{1000});
  pending.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, lab.solo(turn)) << "resumed whole"; },
                  [](caf::error& error) { FAIL() << caf::to_string(error); });
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
  promise("N8", "a credit of 5: 5 deltas, then nothing for " + with_commas(steps) +
                    " steps of others, whose tokens are their own; memory flat; resumed whole");
}

}  // namespace
}  // namespace troupe::test
