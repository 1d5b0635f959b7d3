// Healed turns against brute force: every logit of every step, and every token of the vocabulary.
#include "runtime/text/healing.h"

#include "runtime/text/detokenizer.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

class HealedTurn : public testing::Test {
 protected:
  const Vocabulary& vocabulary() { return *lab_.engine().text().vocabulary; }
  std::vector<TokenId> encoded(const std::string& text) {
    return lab_.engine().text().tokenizer->encode(text, Tokenizer::Specials::as_text);
  }
  std::string text_of(std::span<const TokenId> tokens) {
    return detokenize(vocabulary(), tokens, ControlTokens::write);
  }
  Turn turn_of(const std::string& text, int max_tokens) {
    Turn turn = token_turn({}, max_tokens);
    turn.kind = Turn::Kind::text;
    turn.text = text;
    turn.heal = true;
    turn.sampling = SamplingParams::greedy();
    return turn;
  }

  // The likeliest token, at each step of those that agree with what is still to be spelled.
  std::vector<TokenId> brute_force(std::vector<TokenId> sequence, std::string rest, int count) {
    std::vector<TokenId> answer;
    const auto size = static_cast<std::size_t>(vocabulary().size());
    KvCache cache(engine_->pages());
    EXPECT_TRUE(cache.reserve(std::ssize(sequence) + count));
    std::vector<TokenId> next = sequence;
    for (; count > 0; --count) {
      std::vector<float> logits(next.size() * size);
      const KvLease lease = cache.lend();
      Slice slice{.cache = &lease, .position = cache.length(), .tokens = next, .logits = logits};
      engine_->run({&slice, 1});
      cache.commit(cache.length() + std::ssize(next));
      const std::span<const float> row = std::span<const float>(logits).last(size);
      TokenId best = -1;
      for (TokenId id = 0; id < std::ssize(row); ++id) {
        const std::string_view bytes = vocabulary().bytes(id);
        if (vocabulary().ends_answer(id)) continue;
        if (!rest.empty() &&
            (vocabulary().is_control(id) || bytes.substr(0, rest.size()) != rest.substr(0, bytes.size())))
          continue;
        if (best < 0 || row[static_cast<std::size_t>(id)] > row[static_cast<std::size_t>(best)]) best = id;
      }
      answer.push_back(best);
      rest.erase(0, std::min(rest.size(), vocabulary().bytes(best).size()));
      next = {best};
    }
    return answer;
  }

  ActorLab lab_;
  std::unique_ptr<Engine> engine_ = std::move(*Engine::open(tiny_path(), lab_options()));
};

TEST_F(HealedTurn, chooses_as_brute_force_over_the_vocabulary_and_shows_only_what_lies_past_the_prompt) {
  int healed_turns = 0;
  for (const std::string text : {"Tell me about th", "the whe", "and th", "a caf\xc3", "wh", "t", "zzz the"}) {
    const std::vector<TokenId> tokens = encoded(text);
    const std::size_t back = tokens_to_heal(vocabulary(), std::span(tokens).subspan(1));
    const auto kept = std::span(tokens).first(tokens.size() - back);
    const std::string healed = text_of(std::span(tokens).last(back));
    const Turn turn = turn_of(text, 12);
    const SessionActor session = lab_.open();
    const auto end = lab_.say(session, turn);
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->tokens, brute_force({kept.begin(), kept.end()}, healed, 12)) << text;
    EXPECT_EQ(end->prompt_tokens, std::ssize(kept)) << text;
    const std::string all = text_of(end->tokens);
    ASSERT_TRUE(all.starts_with(healed)) << text;
    Utf8Stream whole;
    std::string shown = whole.push(all.substr(healed.size()));
    shown += whole.flush();
    EXPECT_EQ(end->text, shown) << text;
    healed_turns += back > 0 ? 1 : 0;
  }
  EXPECT_GE(healed_turns, 4);
}

TEST_F(HealedTurn, that_ends_before_its_text_is_covered_leaves_the_rest_to_the_next) {
  const std::string text = "We saw the whe";
  const std::vector<TokenId> tokens = encoded(text);
  const std::size_t back = tokens_to_heal(vocabulary(), std::span(tokens).subspan(1));
  const std::string healed = text_of(std::span(tokens).last(back));
  ASSERT_GT(healed.size(), 1u);
  Turn turn = turn_of(text, 1);
  // One byte only, of the text that is to be spelled.
  turn.sampling->logit_bias = {{*vocabulary().find(healed.substr(0, 1)), 100.0f}};
  const SessionActor session = lab_.open();
  const auto end = lab_.say(session, turn);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->text, "");
  EXPECT_EQ(text_of(end->tokens), healed.substr(0, 1));
  Turn next = turn_of("el turned", 1);
  next.heal = false;
  ASSERT_TRUE(lab_.say(session, next));
  const auto history = lab_.ask<Transcript>(session, transcript_atom_v);
  ASSERT_TRUE(history);
  EXPECT_TRUE(text_of(history->tokens).starts_with(text + "el turned")) << text_of(history->tokens);
}

TEST_F(HealedTurn, that_a_stop_string_cuts_inside_the_healing_token_keeps_its_prompt) {
  const std::string text = "We saw the whe";
  const std::vector<TokenId> tokens = encoded(text);
  const std::size_t back = tokens_to_heal(vocabulary(), std::span(tokens).subspan(1));
  const std::string healed = text_of(std::span(tokens).last(back));
  TokenId across = -1;
  for (TokenId id : healing_tokens(vocabulary(), healed)) {
    if (vocabulary().bytes(id).size() > healed.size()) across = id;
  }
  ASSERT_GE(across, 0);
  Turn turn = turn_of(text, 6);
  turn.sampling->logit_bias = {{across, 100.0f}};
  turn.limits.stop = {std::string(vocabulary().bytes(across).substr(healed.size()))};
  const SessionActor session = lab_.open();
  const auto end = lab_.say(session, turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->reason, FinishReason::stop_string);
  EXPECT_EQ(end->text, "");
  Turn next = turn_of("at", 1);
  next.heal = false;
  ASSERT_TRUE(lab_.say(session, next));
  EXPECT_TRUE(text_of(lab_.ask<Transcript>(session, transcript_atom_v)->tokens).starts_with(text + "at"));
}

TEST_F(HealedTurn, is_refused_for_a_message) {
  Turn turn = turn_of("Hello", 3);
  turn.kind = Turn::Kind::message;
  const auto refused = lab_.say(lab_.open(), turn);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace troupe::test
