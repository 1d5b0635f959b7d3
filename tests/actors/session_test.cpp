#include <algorithm>

#include "runtime/text/detokenizer.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

TEST(Session, answers_as_a_plain_loop_over_the_engine) {
  ActorLab lab;
  const Turn turn = token_turn(prompt(1, 40), 24);
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->tokens, lab.solo(turn));
  EXPECT_EQ(end->reason, FinishReason::length);
  EXPECT_EQ(end->prompt_tokens, 40);
  EXPECT_EQ(end->computed_tokens, 40 + 23);
}

TEST(Session, computes_only_the_new_tokens_of_a_second_turn_and_equals_a_run_from_scratch) {
  ActorLab lab;
  const SessionActor session = lab.open();
  const auto first = lab.say(session, token_turn(prompt(1, 100), 10, 5));
  ASSERT_TRUE(first);
  const auto before = lab.engine().counters().rows;
  const auto second = lab.say(session, token_turn(prompt(2, 30), 12, 6));
  ASSERT_TRUE(second) << second.error().message;
  // The last token of the first answer was pending: it is computed with the second prompt.
  EXPECT_EQ(lab.engine().counters().rows - before, 1u + 30u + 11u);
  EXPECT_EQ(second->cached_tokens, 109);
  std::vector<TokenId> all = prompt(1, 100);
  all.insert(all.end(), first->tokens.begin(), first->tokens.end());
  for (TokenId id : prompt(2, 30)) all.push_back(id);
  EXPECT_EQ(second->tokens, lab.solo(token_turn(all, 12, 6)));
  promise("C3", "behind 110 tokens a turn of 30 and 12 computes 42 rows; the tokens of a run from scratch");
}

TEST(Session, streams_the_whole_text_before_the_full_stop) {
  ActorLab lab;
  std::string streamed;
  std::vector<TokenId> tokens;
  const SessionActor session = lab.open();
  const SinkActor sink = lab.system().spawn([&](SinkActor::pointer self) -> SinkActor::behavior_type {
    return {[&, self](const TextDelta& delta) {
      streamed += delta.text;
      tokens.insert(tokens.end(), delta.tokens.begin(), delta.tokens.end());
      self->send(caf::actor_cast<SessionActor>(self->current_sender()), credit_atom_v, std::int32_t{1});
    }};
  });
  const auto end = lab.ask<TurnEnd>(session, say_atom_v, token_turn(prompt(3, 20), 50), sink);
  ASSERT_TRUE(end);
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
  lab.self()->wait_for(sink);
  EXPECT_EQ(streamed, end->text);
  EXPECT_EQ(tokens, end->tokens);
}

// A session may send its next step before it has looked at the last token, or may not: the answer is the same.
TEST(Session, lets_an_answer_end_at_its_least_number_of_tokens_whether_it_runs_ahead_or_not) {
  ActorLab lab;
  Turn turn = token_turn(prompt(5, 20), 10);
  turn.limits = {.max_tokens = 10, .min_tokens = 3};
  turn.sampling->logit_bias = {{2, 100.0f}};  // the end, wherever it is allowed
  const auto ahead = lab.say(lab.open(), turn);
  ASSERT_TRUE(ahead) << ahead.error().message;
  EXPECT_EQ(ahead->tokens.size(), 4u);
  EXPECT_EQ(ahead->reason, FinishReason::end_token);
  turn.limits.stop = {"no such text"};
  const auto behind = lab.say(lab.open(), turn);
  ASSERT_TRUE(behind) << behind.error().message;
  EXPECT_EQ(behind->tokens, ahead->tokens);
}

TEST(Session, parks_when_its_sink_gives_no_credit_and_goes_on_where_it_stopped) {
  ActorLab lab;
  const SessionActor session = lab.open();
  Turn turn = token_turn(prompt(4, 20), 60);
  turn.credit = 5;
  std::atomic<int> deltas{0};
  const SinkActor sink = lab.system().spawn(
      [&](SinkActor::pointer) -> SinkActor::behavior_type { return {[&](const TextDelta&) { ++deltas; }}; });
  auto pending = lab.self()->request(session, std::chrono::seconds(60), say_atom_v, turn, sink);
  while (deltas < 5) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(deltas, 5) << "a sink without credit must get nothing";
  const auto launches = lab.engine().counters().launches;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(lab.engine().counters().launches, launches) << "a parked session must not compute";
  lab.self()->send(session, credit_atom_v, std::int32_t{1000});
  TurnEnd end;
  pending.receive([&](TurnEnd& ended) { end = std::move(ended); },
                  [](caf::error& error) { FAIL() << caf::to_string(error); });
  EXPECT_EQ(end.tokens, lab.solo(turn));
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

TEST(Session, stops_at_once_and_stays_usable_at_its_last_token) {
  ActorLab lab;
  const SessionActor session = lab.open();
  auto pending = lab.self()->request(session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(5, 10), 900));
  while (lab.engine().counters().sampled < 5) std::this_thread::yield();
  lab.self()->send(session, stop_atom_v);
  TurnEnd cut;
  pending.receive([&](TurnEnd& ended) { cut = std::move(ended); },
                  [](caf::error& error) { FAIL() << caf::to_string(error); });
  EXPECT_EQ(cut.reason, FinishReason::cancelled);
  const auto full = lab.solo(token_turn(prompt(5, 10), static_cast<int>(cut.tokens.size())));
  EXPECT_EQ(cut.tokens, full) << "what was answered is a prefix of the undisturbed answer";
  std::vector<TokenId> all = prompt(5, 10);
  all.insert(all.end(), cut.tokens.begin(), cut.tokens.end());
  for (TokenId id : prompt(6, 7)) all.push_back(id);
  const auto next = lab.say(session, token_turn(prompt(6, 7), 9, 3));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->tokens, lab.solo(token_turn(all, 9, 3)));
}

TEST(Session, queues_four_turns_and_says_busy_to_the_next) {
  ActorLab lab;
  const SessionActor session = lab.open();
  using Pending = decltype(lab.self()->request(session, std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<Pending> pending;
  pending.push_back(lab.self()->request(session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(0, 5), 800)));
  for (int i = 1; i <= 4; ++i) {
    pending.push_back(lab.self()->request(session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(i, 5), 3)));
  }
  const auto refused = lab.say(session, token_turn(prompt(9, 5), 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::busy);
  for (auto& response : pending) {
    response.receive([](TurnEnd& end) { EXPECT_FALSE(end.tokens.empty()); },
                     [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
  promise("C13", "one turn in work and 4 in line, all answered; the sixth is refused");
}

TEST(Session, refuses_a_prompt_over_the_context_with_both_numbers) {
  ActorLab lab;
  const SessionActor session = lab.open();
  const auto refused = lab.say(session, token_turn(prompt(1, 1024), 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::context_length);
  EXPECT_NE(refused.error().message.find("1024 tokens"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(lab.say(session, token_turn(prompt(1, 20), 3))) << "the session is as before";
}

TEST(Session, ends_with_length_when_the_context_is_full) {
  ActorLab lab;
  const auto end = lab.say(lab.open(), token_turn(prompt(1, 1000), 0));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->reason, FinishReason::length);
  EXPECT_EQ(end->tokens.size(), 24u);
}

TEST(Session, refuses_values_out_of_range_by_name) {
  ActorLab lab;
  const SessionActor session = lab.open();
  Turn turn = token_turn(prompt(1, 5), 3);
  turn.sampling->top_p = 0.0f;
  const auto refused = lab.say(session, turn);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  EXPECT_NE(refused.error().message.find("top_p"), std::string::npos);
  Turn foreign = token_turn({5, 100000}, 3);
  EXPECT_FALSE(lab.say(session, foreign));
  EXPECT_FALSE(lab.say(session, token_turn({}, 3))) << "an empty prompt has no token to start from";
}

TEST(Session, cuts_its_history_at_a_stop_string) {
  ActorLab lab;
  const Turn free_run = token_turn(prompt(7, 12), 30);
  const std::vector<TokenId> tokens = lab.solo(free_run);
  const Vocabulary& vocabulary = *lab.engine().text().vocabulary;
  const std::string text = detokenize(vocabulary, tokens, ControlTokens::skip);
  // A stop that begins inside the text of a token in the middle.
  Turn turn = free_run;
  const std::size_t at = text.size() / 2;
  turn.limits.stop = {text.substr(at, 3)};
  const std::size_t match = text.find(turn.limits.stop[0]);
  const SessionActor session = lab.open();
  const auto end = lab.say(session, turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->reason, FinishReason::stop_string);
  const auto transcript = lab.ask<Transcript>(session, transcript_atom_v);
  ASSERT_TRUE(transcript);
  std::vector<TokenId> kept(transcript->tokens.begin() + 12, transcript->tokens.end());
  const std::string kept_text = detokenize(vocabulary, kept, ControlTokens::write);
  EXPECT_LE(kept_text.size(), match);
  EXPECT_TRUE(text.starts_with(kept_text));
}

TEST(Session, tells_the_log_probability_of_every_token_and_of_the_likeliest) {
  ActorLab lab;
  Turn turn = token_turn(prompt(1, 12), 6);
  turn.sampling = SamplingParams::greedy();
  turn.logprobs = 3;
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end) << end.error().message;
  ASSERT_EQ(end->logprobs.size(), end->tokens.size());
  for (std::size_t i = 0; i < end->tokens.size(); ++i) {
    const Sampled& sampled = end->logprobs[i];
    EXPECT_EQ(sampled.token, end->tokens[i]);
    ASSERT_EQ(sampled.top.size(), 3u);
    EXPECT_EQ(sampled.top[0].token, sampled.token) << "greedy takes the likeliest";
    EXPECT_EQ(sampled.top[0].logprob, sampled.logprob);
    EXPECT_LT(sampled.logprob, 0.0f);
    EXPECT_GE(sampled.top[0].logprob, sampled.top[1].logprob);
  }
}

TEST(Session, goes_on_from_a_transcript) {
  ActorLab lab;
  const SessionActor session = lab.open();
  ASSERT_TRUE(lab.say(session, token_turn(prompt(1, 50), 10)));
  const auto past = lab.ask<Transcript>(session, transcript_atom_v);
  ASSERT_TRUE(past);
  const auto here = lab.say(session, token_turn(prompt(2, 9), 8, 4));
  OpenSession opening;
  opening.past = *past;
  const auto there = lab.say(lab.open(opening), token_turn(prompt(2, 9), 8, 4));
  opening.key = "a stranger";
  const auto afar = lab.say(lab.open(opening), token_turn(prompt(2, 9), 8, 4));
  ASSERT_TRUE(here && there && afar);
  EXPECT_EQ(here->tokens, there->tokens);
  EXPECT_EQ(there->cached_tokens, 64) << "the full pages of 68 tokens";
  EXPECT_EQ(here->tokens, afar->tokens);
  EXPECT_EQ(afar->cached_tokens, 0);
}

TEST(Session, gives_its_pages_back_when_it_is_closed) {
  ActorLab lab;
  const std::int64_t all = lab.engine().pages()->total();
  const SessionActor session = lab.open();
  ASSERT_TRUE(lab.say(session, token_turn(prompt(1, 100), 5)));
  EXPECT_LT(lab.engine().pages()->free(), all);
  lab.self()->send(session, close_atom_v);
  EXPECT_EQ(lab.free_pages_at_rest(), all);
}

TEST(Session, chats_through_the_template_and_keeps_its_prefix) {
  ActorLab lab;
  const SessionActor session = lab.open({.system = "Be brief.", .past = {}, .sampling = {}, .key = {}});
  Turn turn;
  turn.text = "Hello there";
  turn.limits.max_tokens = 12;
  turn.sampling = plain_ascii(*lab.engine().text().vocabulary);
  const auto first = lab.say(session, turn);
  ASSERT_TRUE(first) << first.error().message;
  turn.text = "And now?";
  const auto second = lab.say(session, turn);
  ASSERT_TRUE(second) << second.error().message;
  // All but the pending token of the first answer is found again: the template only added to what was there.
  EXPECT_EQ(second->cached_tokens, first->prompt_tokens + static_cast<std::int64_t>(first->tokens.size()) - 1);
  const auto transcript = lab.ask<Transcript>(session, transcript_atom_v);
  ASSERT_TRUE(transcript);
  ASSERT_EQ(transcript->messages.size(), 5u);
  EXPECT_EQ(transcript->messages[2].role, "assistant");
  EXPECT_EQ(transcript->messages[2].content, first->text);
}

TEST(Session, a_parked_turn_keeps_its_time_limit) {
  ActorLab lab;
  const SinkActor silent =
      lab.system().spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
  Turn turn = token_turn(prompt(1, 30), 130);
  turn.credit = 1;
  turn.time_limit = std::chrono::milliseconds(300);
  lab.self()
      ->request(lab.open(), std::chrono::seconds(60), say_atom_v, turn, silent)
      .receive([](TurnEnd&) { ADD_FAILURE() << "nobody read it"; },
               [](caf::error& error) { EXPECT_EQ(error, ErrorCode::timed_out) << caf::to_string(error); });
  lab.self()->send_exit(silent, caf::exit_reason::user_shutdown);
}

TEST(Session, refuses_time_limits_that_no_clock_can_count) {
  ActorLab lab;
  Turn turn = token_turn(prompt(1, 10), 3);
  for (const auto limit :
       {std::chrono::milliseconds::max(), std::chrono::milliseconds(0), std::chrono::milliseconds(-5)}) {
    turn.time_limit = limit;
    const auto refused = lab.say(lab.open(), turn);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  }
  turn.time_limit = Turn::kLongestLimit;
  EXPECT_TRUE(lab.say(lab.open(), turn));
}

// One that has no reader runs ahead of its text; one whose reader gives credit for one delta does not.
TEST(Session, counts_the_tokens_before_an_end_alike_whether_it_runs_ahead_or_not) {
  ActorLab lab;
  const auto sink = lab.system().spawn([](SinkActor::pointer self) -> SinkActor::behavior_type {
    return {[self](TextDelta&) {
      const auto session = caf::actor_cast<SessionActor>(caf::actor_cast<caf::actor>(self->current_sender()));
      self->send(session, credit_atom_v, std::int32_t{1});
    }};
  });
  Turn turn = token_turn(prompt(1, 10), 9);
  turn.sampling = SamplingParams::greedy();
  turn.sampling->logit_bias = {{*lab.engine().text().vocabulary->eos(), 100.0f}};
  turn.limits.ignore_eos = false;
  turn.limits.min_tokens = 3;
  turn.credit = 1;
  const auto ahead = lab.say(lab.open(), turn);
  const auto behind = lab.ask<TurnEnd>(lab.open(), say_atom_v, turn, sink);
  ASSERT_TRUE(ahead && behind);
  EXPECT_EQ(behind->tokens.size(), 4u);
  EXPECT_EQ(ahead->tokens, behind->tokens);
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

}  // namespace
}  // namespace troupe::test
