// Sessions that begin alike: the beginning is computed once, and nobody can tell from the answer.
#include <latch>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

// Turns that begin with the same `common` tokens and go on with three of their own.
Turn turn_with(std::int64_t common, int own) {
  std::vector<TokenId> tokens = prompt(77, static_cast<int>(common));
  for (TokenId token : prompt(1000 + own, 3)) tokens.push_back(token);
  return token_turn(tokens, 12, static_cast<std::uint64_t>(own));
}

// A house whose first launch waits until everybody has come.
struct Gate {
  std::latch all_there{1};
  std::shared_ptr<Engine> engine;
  std::atomic<std::uint64_t> prompt_rows{0};

  SupervisorOptions options() {
    SupervisorOptions options;
    options.run = [this](std::span<Slice> batch) {
      all_there.wait();
      for (const Slice& slice : batch) prompt_rows += slice.tokens.size() > 1 ? slice.tokens.size() : 0;
      engine->run(batch);
    };
    return options;
  }
};

class Arrivals {
 public:
  Arrivals(ActorLab& lab, int count, std::int64_t common) : lab_(lab) {
    for (int i = 0; i < count; ++i) {
      sessions_.push_back(lab.open());
      turns_.push_back(turn_with(common, i));
      pending_.push_back(lab.self()->request(sessions_.back(), std::chrono::seconds(60), say_atom_v, turns_.back()));
    }
  }
  // All but the first are in line behind it.
  void wait_for_line() {
    while (lab_.describe().waiting < std::ssize(sessions_) - 1) std::this_thread::yield();
  }
  SessionActor& session(std::size_t i) { return sessions_[i]; }

  // Every answer from `first` on is that of a session alone. Gives the tokens found in the index, summed.
  std::int64_t expect_solo_answers(std::size_t first = 0) {
    std::int64_t cached = 0;
    for (std::size_t i = first; i < pending_.size(); ++i) {
      pending_[i].receive(
          [&](TurnEnd& end) {
            EXPECT_EQ(end.tokens, lab_.solo(turns_[i])) << "session " << i;
            cached += end.cached_tokens;
          },
          [&](caf::error& error) { ADD_FAILURE() << "session " << i << ": " << caf::to_string(error); });
    }
    return cached;
  }

 private:
  using Pending = decltype(std::declval<ActorLab&>().self()->request(std::declval<SessionActor&>(),
                                                                     std::chrono::seconds(60), say_atom_v, Turn()));
  ActorLab& lab_;
  std::vector<SessionActor> sessions_;
  std::vector<Turn> turns_;
  std::vector<Pending> pending_;
};

TEST(Prefix, many_who_come_at_once_compute_their_common_beginning_once) {
  const std::int64_t sessions = small_scale() ? 10 : 50, common = small_scale() ? 400 : 2048;
  Gate gate;
  ActorLab lab(gate.options(), lab_options(), long_path());
  gate.engine = lab.shared_engine();
  Arrivals arrivals(lab, static_cast<int>(sessions), common);
  arrivals.wait_for_line();
  gate.all_there.count_down();
  EXPECT_EQ(arrivals.expect_solo_answers(), (sessions - 1) * common);
  EXPECT_EQ(gate.prompt_rows, static_cast<std::uint64_t>(common + 3 * sessions));
  EXPECT_EQ(lab.engine().pages()->used(), common / 16 + sessions) << "the beginning once, and a page each for the rest";
  promise("C15", with_commas(sessions) + " sessions with " + with_commas(common) + " common tokens compute " +
                     with_commas(static_cast<std::int64_t>(gate.prompt_rows)) + " rows and hold " +
                     with_commas(lab.engine().pages()->used()) + " pages");
}

TEST(Prefix, the_death_of_the_one_who_computes_lets_the_next_compute) {
  const std::int64_t sessions = small_scale() ? 10 : 50, common = small_scale() ? 400 : 2048;
  Gate gate;
  ActorLab lab(gate.options(), lab_options(), long_path());
  gate.engine = lab.shared_engine();
  Arrivals arrivals(lab, static_cast<int>(sessions), common);
  arrivals.wait_for_line();
  lab.self()->send_exit(arrivals.session(0), caf::exit_reason::kill);
  while (lab.describe().waiting > sessions - 2) std::this_thread::yield();
  gate.all_there.count_down();
  EXPECT_EQ(arrivals.expect_solo_answers(1), (sessions - 2) * common);
  promise("C15", "after the first one's death the next computes, for " + with_commas(sessions - 2) + " others");
}

TEST(Prefix, a_stopped_leader_leaves_its_followers_and_its_own_history_right) {
  Gate gate;
  ActorLab lab(gate.options());
  gate.engine = lab.shared_engine();
  Arrivals arrivals(lab, 5, 400);
  arrivals.wait_for_line();
  ASSERT_TRUE(lab.ask<SessionPhase>(arrivals.session(0), stop_atom_v));
  gate.all_there.count_down();
  EXPECT_EQ(arrivals.expect_solo_answers(1), 3 * 400);
  const Turn later = token_turn(prompt(5, 40), 10);
  const auto end = lab.say(arrivals.session(0), later);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->tokens, lab.solo(later));
}

// A transcript whose tokens are not those of its messages: the next message's prompt replaces all of them.
TEST(Prefix, a_turn_taken_back_leaves_nothing_of_the_prefix_it_began_with) {
  ActorLab lab;
  OpenSession opening;
  opening.past = Transcript{{{"user", std::string(120, 'x')}}, prompt(3, 60)};
  Turn message;
  message.text = "and now?";
  message.limits.max_tokens = 3;
  ASSERT_TRUE(lab.say(lab.open(opening), message));
  const SessionActor session = lab.open(opening);
  const auto first = lab.say(session, token_turn(prompt(4, 20), 10));
  ASSERT_TRUE(first);
  message.sampling = SamplingParams::greedy();
  for (TokenId token = 0; token < lab.engine().shape().vocabulary; ++token) {
    message.sampling->logit_bias.emplace_back(token, -100.0f);
  }
  const auto before = lab.describe().prefixes.tokens_found;
  const auto broken = lab.say(session, message);
  ASSERT_FALSE(broken);
  ASSERT_EQ(broken.error().code, ErrorCode::step_failed) << broken.error().message;
  ASSERT_GT(lab.describe().prefixes.tokens_found, before + 60) << "it began with the other's pages";
  std::vector<TokenId> all = lab.ask<Transcript>(session, transcript_atom_v)->tokens;
  for (TokenId token : prompt(5, 20)) all.push_back(token);
  const auto second = lab.say(session, token_turn(prompt(5, 20), 10));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->tokens, lab.solo(token_turn(all, 10)));
}

TEST(Prefix, other_keys_find_nothing) {
  ActorLab lab;
  OpenSession alice, bob;
  alice.key = "alice";
  bob.key = "bob";
  ASSERT_TRUE(lab.say(lab.open(alice), turn_with(200, 1)));
  EXPECT_EQ(lab.say(lab.open(alice), turn_with(200, 2))->cached_tokens, 192);
  EXPECT_EQ(lab.say(lab.open(bob), turn_with(200, 2))->cached_tokens, 0);
}

TEST(Prefix, what_only_the_index_holds_is_given_back_when_pages_are_wanted) {
  ActorLab lab({}, lab_options(40));
  for (int i = 0; i < 10; ++i) {
    const SessionActor session = lab.open();
    const Turn turn = token_turn(prompt(i, 300), 12);
    const auto end = lab.say(session, turn);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->tokens, lab.solo(turn));
    lab.self()->send(session, close_atom_v);
    EXPECT_EQ(lab.free_pages_at_rest(), 40);
  }
  EXPECT_GT(lab.describe().prefixes.pages_evicted, 100u);
}

TEST(Prefix, nothing_is_shared_where_it_is_switched_off) {
  SupervisorOptions options;
  options.prefix_memory = 0;
  ActorLab lab(options);
  ASSERT_TRUE(lab.say(lab.open(), turn_with(200, 1)));
  EXPECT_EQ(lab.say(lab.open(), turn_with(200, 2))->cached_tokens, 0);
  EXPECT_EQ(lab.describe().prefixes.pages, 0);
}

TEST(Prefix, any_number_may_wait_for_one_prefix_while_there_are_pages) {
  Gate gate;
  EngineOptions large = lab_options();
  large.kv_memory = std::uint64_t{64} << 20;
  ActorLab lab(gate.options(), large);
  gate.engine = lab.shared_engine();
  const std::int64_t common = small_scale() ? 64 : 400;
  Arrivals arrivals(lab, 300, common);
  arrivals.wait_for_line();
  gate.all_there.count_down();
  EXPECT_EQ(arrivals.expect_solo_answers(), 299 * common);
}

TEST(Prefix, a_turn_is_counted_once_however_long_it_waits) {
  ActorLab lab;
  KvCache hold(lab.engine().pages());
  ASSERT_TRUE(hold.reserve(16 * (lab.engine().pages()->total() - 2)));
  auto waiting = lab.self()->request(lab.open(), std::chrono::seconds(60), say_atom_v, turn_with(200, 1));
  while (lab.describe().waiting == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) lab.self()->send(lab.host(), freed_atom_v, SessionId{99}, std::uint64_t{1});
  EXPECT_EQ(lab.describe().prefixes.lookups, 0u);
  hold = KvCache(lab.engine().pages());
  lab.self()->send(lab.host(), freed_atom_v, SessionId{99}, std::uint64_t{1});
  waiting.receive([](TurnEnd&) {}, [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  EXPECT_EQ(lab.describe().prefixes.lookups, 1u);
  EXPECT_EQ(lab.describe().prefixes.tokens_asked, 202u);
}

}  // namespace
}  // namespace troupe::test
