// Endless sessions: past the window, what is said is what a new session would say to the tokens that are still seen.
#include <atomic>
#include <latch>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

constexpr TokenWindow kWindow{64, 4};

OpenSession endless(TokenWindow window = kWindow) {
  OpenSession opening;
  opening.window = window;
  return opening;
}

// The truth, token by token: each is what a new sequence of the seen tokens gives.
std::vector<TokenId> from_scratch(ActorLab& lab, std::vector<TokenId> history, int count) {
  std::vector<TokenId> answer;
  for (int i = 0; i < count; ++i) {
    const auto next = lab.solo(token_turn(kWindow.visible(history, 0), 1));
    history.push_back(next.at(0));
    answer.push_back(next.at(0));
  }
  return answer;
}

TEST(Endless, every_token_is_that_of_a_new_session_with_the_seen_ones) {
  ActorLab lab;
  const auto said = prompt(1, 40);
  const SessionActor session = lab.open(endless());
  const auto end = lab.say(session, token_turn(said, 150));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->reason, FinishReason::length);
  EXPECT_EQ(end->tokens, from_scratch(lab, said, 150));
  EXPECT_EQ(end->dropped_tokens, kWindow.dropped(190));
  EXPECT_GT(end->dropped_tokens, 100);
}

TEST(Endless, goes_on_over_many_turns_and_a_prompt_longer_than_the_window) {
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  std::vector<TokenId> history;
  for (const int tokens : {10, 30, 200, 1, 63}) {
    const auto said = prompt(tokens, tokens);
    history = joined(history, said);
    const auto end = lab.say(session, token_turn(said, 20));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->tokens, from_scratch(lab, history, 20)) << tokens;
    history = joined(history, end->tokens);
    EXPECT_EQ(end->dropped_tokens, kWindow.dropped(std::ssize(history)));
  }
  EXPECT_EQ(lab.ask<Transcript>(session, transcript_atom_v)->tokens, history);
}

TEST(Endless, a_hundred_windows_need_the_pages_of_one) {
  ActorLab lab;
  const int windows = small_scale() ? 10 : 100;
  const SessionActor session = lab.open(endless());
  std::int64_t most = 0;
  std::vector<TokenId> history;
  for (int i = 0; i < windows; ++i) {
    const auto said = prompt(i, 3);
    const auto end = lab.say(session, token_turn(said, static_cast<int>(kWindow.tokens) - 3));
    ASSERT_TRUE(end) << end.error().message;
    history = joined(joined(history, said), end->tokens);
    most = std::max(most, lab.engine().pages()->used() - lab.describe().prefixes.pages);
  }
  EXPECT_LE(most, pages_for(kWindow.tokens));
  promise("C16", with_commas(windows) + " windows of " + with_commas(kWindow.tokens) + " tokens in " +
                     with_commas(pages_for(kWindow.tokens)) + " pages");
  const auto last = lab.say(session, token_turn(prompt(7, 3), 5));
  EXPECT_EQ(last->tokens, from_scratch(lab, joined(history, prompt(7, 3)), 5));
}

TEST(Endless, tells_its_reader_what_the_model_sees_no_more) {
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  std::vector<std::int64_t> told;
  const auto sink = lab.system().spawn([&told](SinkActor::pointer self) -> SinkActor::behavior_type {
    return {[&told, self](TextDelta& delta) {
      told.push_back(delta.dropped_tokens);
      if (auto session_of = caf::actor_cast<caf::actor>(self->current_sender())) {
        self->send(caf::actor_cast<SessionActor>(session_of), credit_atom_v, std::int32_t{1});
      }
    }};
  });
  const auto end = lab.ask<TurnEnd>(session, say_atom_v, token_turn(prompt(1, 40), 60), sink);
  ASSERT_TRUE(end) << end.error().message;
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
  lab.self()->wait_for(sink);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), 0);
  EXPECT_EQ(told.back(), kWindow.dropped(100));
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST(Endless, forks_on_both_sides_of_a_drop_go_on_as_if_alone) {
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  const auto said = prompt(3, 50);
  const auto end = lab.say(session, token_turn(said, 60));
  ASSERT_TRUE(end);
  const auto history = joined(said, end->tokens);
  for (const std::int64_t at : {2, 30, 62, 63, 64, 65, 93, 94, 95, 109, 110}) {
    const auto branch = lab.ask<SessionActor>(lab.host(), fork_atom_v, session, at);
    ASSERT_TRUE(branch);
    const std::vector<TokenId> past(history.begin(), history.begin() + at);
    const auto more = lab.say(*branch, token_turn(prompt(9, 2), 40));
    ASSERT_TRUE(more) << more.error().message;
    EXPECT_EQ(more->tokens, from_scratch(lab, joined(past, prompt(9, 2)), 40)) << at;
  }
}

TEST(Endless, a_saved_session_goes_on_without_computing_again) {
  const ScratchFolder folder;
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  const auto said = prompt(3, 50);
  const auto end = lab.say(session, token_turn(said, 60));
  ASSERT_TRUE(end);
  ASSERT_TRUE(lab.ask<bool>(lab.host(), save_atom_v, session, folder.file("endless")));
  ActorLab other;
  const auto loaded = other.ask<SessionActor>(other.host(), load_atom_v, folder.file("endless"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto more = other.say(*loaded, token_turn(prompt(4, 2), 50));
  ASSERT_TRUE(more);
  EXPECT_EQ(more->tokens, from_scratch(lab, joined(joined(said, end->tokens), prompt(4, 2)), 50));
  EXPECT_EQ(more->cached_tokens, kWindow.seen(110) - 1);
}

// A sink that gives `credits` back, all in one go, when it has taken `deltas` deltas; -1: never again.
SinkActor stalling_sink(ActorLab& lab, int deltas, std::vector<std::int32_t> credits, std::atomic<int>& taken) {
  return lab.system().spawn([=, &taken](SinkActor::pointer self) -> SinkActor::behavior_type {
    return {[=, &taken](TextDelta&) {
      if (++taken != deltas) return;
      const auto session = caf::actor_cast<SessionActor>(caf::actor_cast<caf::actor>(self->current_sender()));
      for (const std::int32_t credit : credits) self->send(session, credit_atom_v, credit);
    }};
  });
}

// A turn whose every token is a delta of its own.
Turn one_delta_a_token(ActorLab& lab, std::vector<TokenId> tokens, int max_tokens, int credit) {
  Turn turn = token_turn(std::move(tokens), max_tokens);
  turn.sampling = plain_ascii(*lab.engine().text().vocabulary);
  turn.credit = credit;
  return turn;
}

std::vector<TokenId> ascii_from_scratch(ActorLab& lab, std::vector<TokenId> history, int count) {
  std::vector<TokenId> answer;
  for (int i = 0; i < count; ++i) {
    answer.push_back(lab.solo(one_delta_a_token(lab, kWindow.visible(history, 0), 1, 1)).at(0));
    history.push_back(answer.back());
  }
  return answer;
}

// Parked with a full window: the first credit asks for pages, the next ones come before these are there.
TEST(Endless, takes_many_credits_at_once_where_its_window_moves) {
  std::latch may_start(1);
  std::shared_ptr<Engine> engine;
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    may_start.wait();
    engine->run(batch);
  };
  ActorLab lab(options, lab_options(4));
  engine = lab.shared_engine();
  std::atomic<int> taken{0};
  const auto sink = stalling_sink(lab, 24, {1, 1, 100}, taken);
  auto talks = lab.self()->request(lab.open(endless()), std::chrono::seconds(60), say_atom_v,
                                   one_delta_a_token(lab, prompt(1, 40), 60, 24), sink);
  while (lab.engine().pages()->free() > 0) std::this_thread::yield();
  // Who waits for pages gets them first.
  auto waits =
      lab.self()->request(lab.open(endless()), std::chrono::seconds(60), say_atom_v, token_turn(prompt(2, 40), 20));
  while (lab.describe().waiting == 0) std::this_thread::yield();
  may_start.count_down();
  const auto fails = [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
  waits.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, from_scratch(lab, prompt(2, 40), 20)); }, fails);
  talks.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, ascii_from_scratch(lab, prompt(1, 40), 60)); }, fails);
  EXPECT_EQ(lab.describe().batcher_restarts, 0);
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

// Its window has moved and was computed: that its reader takes no more is nobody else's business.
TEST(Endless, a_parked_session_holds_up_nobody_who_begins_like_its_window) {
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  std::atomic<int> taken{0};
  const auto sink = stalling_sink(lab, -1, {}, taken);
  auto parked = lab.self()->request(session, std::chrono::seconds(60), say_atom_v,
                                    one_delta_a_token(lab, prompt(1, 40), 60, 30), sink);
  auto history = joined(prompt(1, 40), ascii_from_scratch(lab, prompt(1, 40), 24));
  ASSERT_EQ(kWindow.dropped(std::ssize(history)), 30);
  while (taken < 30) std::this_thread::yield();
  Turn alike = token_turn(kWindow.visible(history, 0), 5);
  alike.time_limit = std::chrono::seconds(20);
  const auto end = lab.say(lab.open(), alike);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->tokens, lab.solo(alike));
  EXPECT_EQ(end->cached_tokens, 32);
  caf::anon_send(session, stop_atom_v);
  parked.receive([](TurnEnd& stopped) { EXPECT_EQ(stopped.tokens.size(), 30u); },
                 [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

TEST(Endless, the_end_of_a_turn_tells_what_its_last_token_has_dropped) {
  ActorLab lab;
  const auto end = lab.say(lab.open(endless()), token_turn(prompt(1, 40), 24));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->dropped_tokens, kWindow.dropped(64));
}

// Each drop gives pages back and asks for others: turns in line must neither starve nor stop the one that runs.
TEST(Endless, many_in_a_small_pool_all_come_to_their_end) {
  ActorLab lab({}, lab_options(9));  // two windows of four pages, and one page
  std::vector<SessionActor> sessions;
  for (int i = 0; i < 6; ++i) sessions.push_back(lab.open(endless()));
  using Pending = decltype(lab.self()->request(sessions[0], std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<Pending> pending;
  for (int i = 0; i < 6; ++i) {
    pending.push_back(lab.self()->request(sessions[static_cast<std::size_t>(i)], std::chrono::seconds(60), say_atom_v,
                                          token_turn(prompt(i, 50), 120)));
  }
  for (int i = 0; i < 6; ++i) {
    pending[static_cast<std::size_t>(i)].receive(
        [&](TurnEnd& end) { EXPECT_EQ(end.tokens, from_scratch(lab, prompt(i, 50), 120)) << i; },
        [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
  for (const SessionActor& session : sessions) caf::anon_send(session, close_atom_v);
  EXPECT_EQ(lab.free_pages_at_rest(), 9);
}

TEST(Endless, a_stopped_turn_keeps_what_was_said) {
  ActorLab lab;
  const SessionActor session = lab.open(endless());
  const auto first = lab.say(session, token_turn(prompt(1, 50), 40));
  ASSERT_TRUE(first);
  auto running = lab.self()->request(session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(2, 5), 0));
  while (lab.ask<LaunchStats>(lab.host(), stats_atom_v)->rows < 300) std::this_thread::yield();
  caf::anon_send(session, stop_atom_v);
  auto history = joined(prompt(1, 50), first->tokens);
  running.receive(
      [&](TurnEnd& end) {
        EXPECT_EQ(end.reason, FinishReason::cancelled);
        history = joined(joined(history, prompt(2, 5)), end.tokens);
      },
      [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  const auto next = lab.say(session, token_turn(prompt(3, 2), 10));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->tokens, from_scratch(lab, joined(history, prompt(3, 2)), 10));
}

TEST(Endless, a_window_that_does_not_fit_the_context_is_refused) {
  ActorLab lab;
  const auto refused = lab.ask<SessionActor>(lab.host(), open_atom_v, endless({lab.engine().context() + 1, 4}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace troupe::test
