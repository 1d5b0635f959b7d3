// Logits processors: a turn's own function in the launch, with effects on that turn alone.
#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void allow_only(std::span<float> logits, TokenId token) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<TokenId>(i) != token) logits[i] = kNever;
  }
}

class Processors : public testing::Test {
 protected:
  using Pending = decltype(std::declval<caf::scoped_actor&>()->request(SessionActor(), std::chrono::seconds(60),
                                                                       say_atom_v, Turn()));
  Pending start(const Turn& turn) {
    sessions_.push_back(lab_.open());
    return lab_.self()->request(sessions_.back(), std::chrono::seconds(60), say_atom_v, turn);
  }

  ActorLab lab_;
  std::vector<SessionActor> sessions_;
};

TEST_F(Processors, choose_by_the_tokens_so_far_and_no_neighbour_notices) {
  Turn counting = token_turn({10, 11, 12}, 20);
  counting.logits_processor = [](std::span<float> logits, std::span<const TokenId> tokens) {
    allow_only(logits, tokens.back() + 1);  // 13, 14, 15 ...
  };
  std::vector<Turn> turns{token_turn(prompt(1, 30), 20), counting, token_turn(prompt(2, 30), 20)};
  std::vector<Pending> pending;
  for (const Turn& turn : turns) pending.push_back(start(turn));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::vector<TokenId> expected;
    if (i == 1) {
      for (TokenId token = 13; token < 33; ++token) expected.push_back(token);
    } else {
      expected = lab_.solo(turns[i]);
    }
    pending[i].receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, expected) << i; },
                       [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
}

TEST_F(Processors, that_throw_fail_their_own_turn_with_their_sentence) {
  Turn throwing = token_turn(prompt(3, 10), 20);
  throwing.logits_processor = [](std::span<float>, std::span<const TokenId> tokens) {
    if (tokens.size() == 15) throw std::runtime_error("no rule for place 15");
  };
  Turn strange = throwing;
  strange.logits_processor = [](std::span<float>, std::span<const TokenId>) { throw 7; };
  const Turn neighbour = token_turn(prompt(4, 30), 40);
  Pending beside = start(neighbour), failing = start(throwing), odd = start(strange);
  const auto message_of = [](Pending& turn) {
    Error failed{ErrorCode::cancelled, ""};
    turn.receive([](TurnEnd&) { ADD_FAILURE() << "it went on"; }, [&](caf::error& error) { failed = from_caf(error); });
    EXPECT_EQ(failed.code, ErrorCode::step_failed);
    return failed.message;
  };
  EXPECT_NE(message_of(failing).find("no rule for place 15"), std::string::npos);
  EXPECT_NE(message_of(odd).find("no std::exception"), std::string::npos);
  beside.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, lab_.solo(neighbour)); },
                 [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  EXPECT_EQ(lab_.describe().batcher_restarts, 0);
  const auto history = lab_.ask<Transcript>(sessions_[1], transcript_atom_v);
  ASSERT_TRUE(history);
  EXPECT_EQ(history->tokens.size(), 15u) << "it stands at its last token";
  const auto again = lab_.say(sessions_[1], token_turn(prompt(5, 3), 4));
  EXPECT_TRUE(again) << "and is usable";
}

TEST_F(Processors, leave_log_probabilities_of_the_models_own_row) {
  Turn plain = token_turn(prompt(6, 12), 1), forced = plain;
  plain.logprobs = forced.logprobs = 20;
  forced.logits_processor = [](std::span<float> logits, std::span<const TokenId>) {
    logits[9] = 5.0f;
    allow_only(logits, 9);
  };
  const auto end = lab_.say(lab_.open(), plain), made = lab_.say(lab_.open(), forced);
  ASSERT_TRUE(end && made);
  EXPECT_EQ(made->tokens, (std::vector<TokenId>{9}));
  plain.sampling = SamplingParams::greedy();
  plain.sampling->logit_bias = {{9, 100.0f}};
  const auto biased = lab_.say(lab_.open(), plain);
  ASSERT_TRUE(biased);
  EXPECT_EQ(made->logprobs[0].logprob, biased->logprobs[0].logprob);
  EXPECT_EQ(made->logprobs[0].top[0].token, end->logprobs[0].top[0].token);
}

TEST_F(Processors, never_cross_to_another_process) {
  Turn turn = token_turn({1, 2}, 3);
  caf::byte_buffer bytes;
  caf::binary_serializer plain{lab_.system(), bytes};
  EXPECT_TRUE(plain.apply(turn));
  turn.logits_processor = [](std::span<float>, std::span<const TokenId>) {};
  caf::binary_serializer refused{lab_.system(), bytes};
  EXPECT_FALSE(refused.apply(turn));
  EXPECT_NE(caf::to_string(refused.get_error()).find("logits processor"), std::string::npos);
}

TEST(ProcessorFacade, takes_one_with_the_options_of_a_turn) {
  auto host = Host::open(tiny_path(), {.engine = lab_options()});
  ASSERT_TRUE(host);
  auto session = host->open_session();
  ASSERT_TRUE(session);
  TurnOptions options;
  options.limits.max_tokens = 5;
  options.logits_processor = [](std::span<float> logits, std::span<const TokenId>) { allow_only(logits, 3 + 'x'); };
  const auto end = session->say("Hello", options);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->text, "xxxxx");
}

}  // namespace
}  // namespace troupe::test
