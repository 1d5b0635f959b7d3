// Forks: two conversations from one, at any token, each as if it had always been alone.
#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

// A turn that goes on with the answer it was forked in.
Turn go_on(int max_tokens, std::uint64_t seed = 1) {
  return token_turn({}, max_tokens, seed);
}

std::vector<TokenId> first(const std::vector<TokenId>& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

class Forks : public testing::Test {
 protected:
  SessionActor fork(const SessionActor& origin, std::int64_t tokens = -1) {
    auto session = lab_.ask<SessionActor>(lab_.host(), fork_atom_v, origin, tokens);
    if (!session) throw std::runtime_error(session.error().message);
    return *session;
  }
  std::vector<TokenId> answer(const SessionActor& session, const Turn& turn) {
    auto end = lab_.say(session, turn);
    if (!end) throw std::runtime_error(end.error().message);
    return end->tokens;
  }
  std::vector<TokenId> history(const SessionActor& session) {
    return lab_.ask<Transcript>(session, transcript_atom_v)->tokens;
  }

  ActorLab lab_;
};

TEST_F(Forks, at_every_token_of_prompt_and_answer_the_rest_of_the_answer_is_the_same) {
  const SessionActor origin = lab_.open();
  const Turn turn = token_turn(prompt(1, 21), 14);
  answer(origin, turn);
  const std::vector<TokenId> all = history(origin);
  for (std::size_t at = 1; at < all.size(); ++at) {
    const SessionActor branch = fork(origin, static_cast<std::int64_t>(at));
    const int left = static_cast<int>(all.size() - at);
    EXPECT_EQ(answer(branch, go_on(left)), lab_.solo(token_turn(first(all, at), left))) << "forked at " << at;
    ASSERT_TRUE(at < turn.tokens.size() || history(branch) == all) << "forked at " << at;
    lab_.self()->send(branch, close_atom_v);
  }
  EXPECT_EQ(history(origin), all);
  promise("C2", "forked at each of " + std::to_string(all.size() - 1) + " tokens, both branches as two runs");
}

TEST_F(Forks, branches_that_part_are_two_conversations) {
  const SessionActor origin = lab_.open();
  answer(origin, token_turn(prompt(1, 30), 10));
  const SessionActor branch = fork(origin);
  const std::vector<TokenId> trunk = history(origin);
  for (int turn = 2; turn < 6; ++turn) {
    for (const auto& [session, which] : {std::pair(origin, turn), std::pair(branch, 100 + turn)}) {
      std::vector<TokenId> all = history(session);
      for (TokenId token : prompt(which, 7)) all.push_back(token);
      EXPECT_EQ(answer(session, token_turn(prompt(which, 7), 9)), lab_.solo(token_turn(all, 9)));
    }
  }
  EXPECT_EQ(first(history(origin), trunk.size()), trunk);
  EXPECT_EQ(first(history(branch), trunk.size()), trunk);
}

// Best of n: forked in mid-answer, each branch draws with a seed of its own.
TEST_F(Forks, in_mid_answer_every_branch_goes_on_from_what_was_said_so_far) {
  const SessionActor origin = lab_.open();
  const Turn turn = token_turn(prompt(1, 40), 300);
  auto pending = lab_.self()->request(origin, std::chrono::seconds(60), say_atom_v, turn);
  std::vector<SessionActor> branches;
  for (int i = 0; i < 8; ++i) {
    while (lab_.engine().counters().sampled < static_cast<std::uint64_t>(5 + 10 * i)) std::this_thread::yield();
    branches.push_back(fork(origin));
  }
  pending.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, lab_.solo(turn)) << "forks changed the origin"; },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::vector<TokenId> so_far = history(branches[i]);
    EXPECT_GT(so_far.size(), 40u);
    EXPECT_EQ(so_far, first(history(origin), so_far.size()));
    EXPECT_EQ(answer(branches[i], go_on(12, i)), lab_.solo(token_turn(so_far, 12, i)));
  }
}

TEST_F(Forks, copy_no_page_and_give_everything_back) {
  const std::int64_t all = lab_.engine().pages()->total();
  const SessionActor origin = lab_.open();
  answer(origin, token_turn(prompt(1, 200), 10));
  const std::int64_t used = lab_.engine().pages()->used();
  std::vector<SessionActor> branches;
  for (int i = 0; i < 100; ++i) branches.push_back(fork(i % 2 == 0 ? origin : branches.back()));
  EXPECT_EQ(lab_.engine().pages()->used(), used);
  for (const SessionActor& branch : branches) lab_.self()->send(branch, close_atom_v);
  lab_.self()->send(origin, close_atom_v);
  EXPECT_EQ(lab_.free_pages_at_rest(), all);
}

TEST_F(Forks, keep_the_messages_up_to_where_they_parted) {
  Turn turn;
  turn.text = "Hello there";
  turn.limits.max_tokens = 8;
  turn.sampling = plain_ascii(*lab_.engine().text().vocabulary);
  const SessionActor origin = lab_.open({.system = "Be brief.", .past = {}, .sampling = {}, .key = {}});
  const auto one = lab_.say(origin, turn);
  ASSERT_TRUE(one) << one.error().message;
  turn.text = "And now?";
  const auto two = lab_.say(origin, turn);
  ASSERT_TRUE(two);
  const auto messages = [&](std::int64_t at) {
    return lab_.ask<Transcript>(fork(origin, at), transcript_atom_v)->messages;
  };
  const std::int64_t answered = one->prompt_tokens + std::ssize(one->tokens);
  EXPECT_EQ(messages(-1).size(), 5u);
  EXPECT_EQ(messages(answered),
            (std::vector<Message>{{"system", "Be brief."}, {"user", "Hello there"}, {"assistant", one->text}}));
  EXPECT_EQ(messages(one->prompt_tokens).size(), 2u) << "the question is asked, nothing is answered";
  EXPECT_EQ(messages(one->prompt_tokens + 3).back().role, "assistant") << "an unfinished message";
  EXPECT_EQ(messages(5).size(), 1u);
}

TEST_F(Forks, an_answer_that_a_fork_finishes_is_part_of_its_chat) {
  Turn turn;
  turn.text = "Hello there";
  turn.limits.max_tokens = 12;
  turn.sampling = plain_ascii(*lab_.engine().text().vocabulary);
  const SessionActor origin = lab_.open({.system = "Be brief.", .past = {}, .sampling = {}, .key = {}});
  const auto one = lab_.say(origin, turn);
  ASSERT_TRUE(one) << one.error().message;
  Turn question = turn;
  question.text = "And now?";
  for (std::int64_t said : {0, 3, 11}) {
    const SessionActor branch = fork(origin, one->prompt_tokens + said);
    Turn rest = go_on(static_cast<int>(std::ssize(one->tokens) - said));
    rest.sampling = turn.sampling;
    answer(branch, rest);
    const SessionActor whole = fork(origin);
    EXPECT_EQ(lab_.ask<Transcript>(branch, transcript_atom_v)->messages,
              lab_.ask<Transcript>(whole, transcript_atom_v)->messages);
    const auto here = lab_.say(branch, question), there = lab_.say(whole, question);
    ASSERT_TRUE(here && there);
    EXPECT_EQ(here->prompt_tokens, there->prompt_tokens) << "after " << said;
    EXPECT_EQ(here->tokens, there->tokens) << "after " << said;
  }
}

TEST_F(Forks, outside_the_history_or_the_house_are_refused) {
  const SessionActor origin = lab_.open();
  answer(origin, token_turn(prompt(1, 10), 5));
  for (std::int64_t at : {std::int64_t{16}, std::int64_t{-2}, std::int64_t{1} << 40}) {
    const auto refused = lab_.ask<SessionActor>(lab_.host(), fork_atom_v, origin, at);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
    EXPECT_NE(refused.error().message.find("15"), std::string::npos) << refused.error().message;
  }
  ActorLab other;
  const auto stranger = other.ask<SessionActor>(other.host(), fork_atom_v, origin, std::int64_t{-1});
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, ErrorCode::not_found);
}

TEST(ForkFacade, gives_a_session_of_its_own) {
  HostOptions options;
  options.engine = lab_options();
  auto host = Host::open(tiny_path(), options);
  ASSERT_TRUE(host);
  auto origin = host->open_session();
  ASSERT_TRUE(origin);
  const auto begun = origin->take(token_turn(prompt(1, 20), 10));
  ASSERT_TRUE(begun);
  auto branch = origin->fork(25);
  ASSERT_TRUE(branch) << branch.error().message;
  const auto rest = branch->take(go_on(5));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->tokens, (std::vector<TokenId>(begun->tokens.begin() + 5, begun->tokens.end())));
  EXPECT_FALSE(origin->fork(31));
}

}  // namespace
}  // namespace troupe::test
