#include <latch>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

// Dies with the engine's fault at the calls that `dies` names.
struct Mortal {
  std::shared_ptr<Engine> engine;
  std::atomic<int> calls{0};
  std::function<bool(int)> dies;
  RunBatch run() {
    return [this](std::span<Slice> batch) {
      if (dies(++calls)) throw DeviceFault("the device is gone");
      engine->run(batch);
    };
  }
};

TEST(Supervisor, starts_a_new_batcher_and_no_session_loses_a_token) {
  Mortal mortal;
  mortal.dies = [](int call) { return call == 5 || call == 30; };
  SupervisorOptions options;
  options.run = mortal.run();
  ActorLab lab(options);
  mortal.engine = lab.shared_engine();
  std::vector<SessionActor> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(lab.open());
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(lab.solo(token_turn(prompt(i, 30), 60)));
  using Pending = decltype(lab.self()->request(sessions[0], std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<Pending> pending;
  for (int i = 0; i < 4; ++i) {
    pending.push_back(lab.self()->request(sessions[static_cast<std::size_t>(i)], std::chrono::seconds(60), say_atom_v,
                                          token_turn(prompt(i, 30), 60)));
  }
  for (int i = 0; i < 4; ++i) {
    pending[static_cast<std::size_t>(i)].receive(
        [&](TurnEnd& end) { EXPECT_EQ(end.tokens, expected[static_cast<std::size_t>(i)]); },
        [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
  EXPECT_EQ(lab.describe().batcher_restarts, 2);
  EXPECT_TRUE(lab.describe().ready);
  lab.stop();
}

TEST(Supervisor, gives_up_after_three_restarts_and_tells_every_session) {
  Mortal mortal;
  mortal.dies = [](int) { return true; };
  SupervisorOptions options;
  options.run = mortal.run();
  ActorLab lab(options);
  mortal.engine = lab.shared_engine();
  const SessionActor session = lab.open();
  const auto failed = lab.say(session, token_turn(prompt(1, 5), 5));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::engine_failed);
  EXPECT_EQ(mortal.calls, 4) << "the first batcher and three more";
  EXPECT_FALSE(lab.describe().ready);
  const auto refused = lab.ask<SessionActor>(lab.host(), open_atom_v, OpenSession{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::engine_failed);
  EXPECT_FALSE(lab.say(session, token_turn(prompt(1, 5), 5))) << "later turns fail at once";
  lab.stop();
}

TEST(Supervisor, fails_the_turns_of_a_launch_that_hangs_and_goes_on_when_it_ends) {
  std::latch end_of_hang(1);
  std::atomic<bool> hang{true};
  std::shared_ptr<Engine> engine;
  SupervisorOptions options;
  options.hang_limit = std::chrono::milliseconds(600);
  options.run = [&](std::span<Slice> batch) {
    if (hang.exchange(false)) end_of_hang.wait();
    engine->run(batch);
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  const SessionActor session = lab.open();
  const Turn turn = token_turn(prompt(1, 5), 5);
  const auto failed = lab.say(session, turn);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::engine_failed);
  EXPECT_NE(failed.error().message.find("does not end"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(lab.describe().ready);
  const auto late = lab.say(lab.open(), turn);
  ASSERT_FALSE(late) << "one that is opened meanwhile is told too";
  EXPECT_EQ(late.error().code, ErrorCode::engine_failed);
  end_of_hang.count_down();
  while (!lab.describe().ready) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto answered = lab.say(lab.open(), turn);
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(answered->tokens, lab.solo(turn));
  lab.stop();
}

TEST(Supervisor, makes_a_turn_wait_until_pages_are_free) {
  EngineOptions small = lab_options();
  const std::int64_t page = [] {
    auto engine = Engine::open(tiny_path(), lab_options());
    return static_cast<std::int64_t>((*engine)->pages()->layout().page_bytes());
  }();
  small.kv_memory = static_cast<std::uint64_t>(page) * 10;
  ActorLab lab({}, small);
  const SessionActor first = lab.open(), second = lab.open();
  Turn parked = token_turn(prompt(1, 20), 100);
  parked.credit = 1;  // a sink that gives no credit: the turn keeps its pages until it is stopped
  const SinkActor silent =
      lab.system().spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
  caf::anon_send(first, say_atom_v, parked, silent);
  while (lab.engine().counters().launches == 0) std::this_thread::yield();  // the first has its pages
  // 20 + 100 tokens take 8 of 10 pages; the second needs as many and waits until the first is stopped.
  auto waiting = lab.self()->request(second, std::chrono::seconds(60), say_atom_v, token_turn(prompt(2, 20), 100));
  while (lab.describe().waiting == 0) std::this_thread::yield();
  lab.self()->send(first, stop_atom_v);
  waiting.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 100u); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  const auto never = lab.say(second, token_turn(prompt(3, 10), 800));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(never.error().message.find(" 10"), std::string::npos) << never.error().message;
  lab.self()->send_exit(silent, caf::exit_reason::user_shutdown);
}

TEST(Supervisor, drains_refuses_opens_and_answers_when_the_last_session_has_gone) {
  ActorLab lab;
  const SessionActor idle = lab.open(), session = lab.open();
  Turn turn = token_turn(prompt(1, 5), 900);
  turn.credit = 1;  // a sink that gives no credit: the turn is in work until it is stopped
  const SinkActor silent =
      lab.system().spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
  caf::anon_send(session, say_atom_v, turn, silent);
  EXPECT_FALSE(*lab.ask<bool>(lab.host(), drain_atom_v, caf::timespan(std::chrono::milliseconds(300))));
  EXPECT_EQ(lab.describe().sessions, 1) << "the idle one has gone";
  const auto refused = lab.ask<SessionActor>(lab.host(), open_atom_v, OpenSession{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::shutting_down);
  lab.self()->send(session, close_atom_v);
  EXPECT_TRUE(*lab.ask<bool>(lab.host(), drain_atom_v, caf::timespan(std::chrono::seconds(30))));
  lab.self()->send_exit(silent, caf::exit_reason::user_shutdown);
}

TEST(Supervisor, refuses_a_transcript_with_foreign_tokens) {
  ActorLab lab;
  OpenSession opening;
  opening.past = Transcript{{}, {1, 2, 99999}};
  const auto refused = lab.ask<SessionActor>(lab.host(), open_atom_v, opening);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

// Holds the one scheduler thread until it is let go. That thread shares the latches: it looks at one again afterwards.
class Blocker {
 public:
  explicit Blocker(caf::actor_system& system) {
    system.spawn([latches = latches_](caf::event_based_actor*) {
      latches->in.count_down();
      latches->out.wait();
    });
    latches_->in.wait();
  }
  ~Blocker() { latches_->out.count_down(); }

 private:
  struct Latches {
    std::latch in{1}, out{1};
  };
  const std::shared_ptr<Latches> latches_ = std::make_shared<Latches>();
};

// The host's grant for a turn and the word that this turn was stopped cross each other.
TEST(Supervisor, a_grant_that_comes_too_late_does_no_harm_to_the_sessions_next_turn) {
  ActorLab lab({}, lab_options(20));
  const SessionActor session = lab.open(), other = lab.open();
  KvCache hold(lab.engine().pages()), some(lab.engine().pages());
  ASSERT_TRUE(hold.reserve(14 * 16) && some.reserve(4 * 16));
  const auto ask = [&](const SessionActor& whom, int which, int tokens) {
    return lab.self()->request(whom, std::chrono::seconds(60), say_atom_v, token_turn(prompt(which, 40), tokens));
  };
  auto stopped = ask(session, 1, 20);
  while (lab.describe().waiting < 1) std::this_thread::yield();
  auto next = ask(session, 2, 20);
  auto others = ask(other, 3, 40);
  while (lab.describe().waiting < 2) std::this_thread::yield();
  {
    const Blocker blocker(lab.system());
    some = KvCache(lab.engine().pages());
    lab.self()->send(lab.host(), freed_atom_v, SessionId{999}, std::uint64_t{1});
    caf::anon_send(session, stop_atom_v);
  }
  stopped.receive([](TurnEnd& end) { EXPECT_EQ(end.reason, FinishReason::cancelled); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  next.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 20u); },
               [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  others.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 40u); },
                 [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
}

}  // namespace
}  // namespace troupe::test
