// best_of: branches behind one prompt, each what a session alone would say, in the order of their likelihood.
#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

class BestOf : public testing::Test {
 protected:
  Session open() {
    auto session = host_.open_session();
    if (!session) throw std::runtime_error(session.error().message);
    return std::move(*session);
  }
  Turn turn_of(int max_tokens) {
    Turn turn = token_turn(prompt(1, 100), max_tokens, 7);
    turn.sampling->frequency_penalty = 0.5f;
    return turn;
  }

  Host host_ = std::move(*Host::open(tiny_path(), {.engine = lab_options()}));
};

TEST_F(BestOf, gives_the_same_bits_as_n_separate_runs_and_computes_the_prompt_once) {
  Turn turn = turn_of(20);
  turn.logprobs = 2;
  Session session = open();
  const auto rows = host_.launch_stats()->rows;
  const auto answers = session.best_of(turn, 5);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(host_.launch_stats()->rows - rows, 100u + 5u * 20u);
  ASSERT_EQ(answers->size(), 5u);
  std::vector<bool> seen(5);
  for (const RankedAnswer& one : *answers) {
    Turn alone = turn;
    alone.branch = one.branch;
    alone.sampling->seed = 7;
    const auto end = open().take(alone);
    ASSERT_TRUE(end);
    EXPECT_EQ(one.end.tokens, end->tokens) << "branch " << one.branch;
    ASSERT_EQ(one.end.logprobs.size(), end->logprobs.size());
    for (std::size_t i = 0; i < end->logprobs.size(); ++i) {
      EXPECT_EQ(one.end.logprobs[i].logprob, end->logprobs[i].logprob);
      EXPECT_EQ(one.end.logprobs[i].top.size(), 2u);
    }
    Turn seeded = turn;
    seeded.sampling->seed = 7 + one.branch;
    EXPECT_EQ(open().take(seeded)->tokens, one.end.tokens) << "the rule of the seeds";
    seen[static_cast<std::size_t>(one.branch)] = true;
  }
  EXPECT_EQ(seen, std::vector<bool>(5, true));
}

TEST_F(BestOf, ranks_by_the_mean_log_probability) {
  const auto answers = open().best_of(turn_of(8), 6);
  ASSERT_TRUE(answers) << answers.error().message;
  for (std::size_t i = 0; i < answers->size(); ++i) {
    double sum = 0.0;
    for (const Sampled& sampled : (*answers)[i].end.logprobs) sum += sampled.logprob;
    EXPECT_EQ((*answers)[i].mean_logprob, sum / 8.0);
    EXPECT_TRUE(i == 0 || (*answers)[i - 1].mean_logprob >= (*answers)[i].mean_logprob);
  }
  EXPECT_GT(answers->front().mean_logprob, answers->back().mean_logprob);
}

TEST_F(BestOf, equal_answers_stand_in_the_order_of_their_branches) {
  Turn turn = turn_of(5);
  turn.sampling = SamplingParams::greedy();
  turn.branch = 3;
  const auto answers = open().best_of(turn, 3);
  ASSERT_TRUE(answers);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*answers)[i].branch, 3 + i);
    EXPECT_EQ((*answers)[i].end.tokens, answers->front().end.tokens);
  }
}

TEST_F(BestOf, leaves_the_session_as_it_was_and_a_chat_goes_on_with_any_branch) {
  Session session = open();
  Turn turn;
  turn.text = "Hello there";
  turn.limits.max_tokens = 6;
  auto answers = session.best_of(turn, 3);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_TRUE(session.transcript()->messages.empty());
  for (RankedAnswer& one : *answers) {
    const auto messages = one.session.transcript()->messages;
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(messages[0].content, "Hello there");
    Utf8Stream whole;  // the message keeps bytes that are no character
    std::string shown = whole.push(messages[1].content);
    shown += whole.flush();
    EXPECT_EQ(shown, one.end.text);
    EXPECT_TRUE(one.session.say("And then?", {.limits = {.max_tokens = 3}}));
  }
}

TEST_F(BestOf, refuses_what_makes_no_sense) {
  Turn healed = turn_of(3);
  healed.heal = true;
  for (const auto& refused :
       {open().best_of(turn_of(3), 0), open().best_of(turn_of(3), 257), open().best_of(healed, 2)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
  }
}

}  // namespace
}  // namespace troupe::test
