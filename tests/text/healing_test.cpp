// Token healing against brute force over whole vocabularies.
#include "runtime/text/healing.h"

#include <gtest/gtest.h>

#include "runtime/text/detokenizer.h"
#include "tests/support/promise.h"
#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe::test {
namespace {

// Two texts of which one begins with the other, byte by byte.
bool agree(std::string_view a, std::string_view b) {
  bool equal = true;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) equal = equal && a[i] == b[i];
  return equal;
}

std::vector<TokenId> brute_healing_tokens(const Vocabulary& vocabulary, const std::string& rest) {
  std::vector<TokenId> allowed;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) == TokenKind::control || vocabulary.bytes(id).empty()) continue;
    if (agree(vocabulary.bytes(id), rest)) allowed.push_back(id);
  }
  return allowed;
}

std::size_t brute_tokens_to_heal(const Vocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  std::size_t most = 0;
  for (std::size_t count = 1; count <= tokens.size(); ++count) {
    if (vocabulary.kind(tokens[tokens.size() - count]) == TokenKind::control) break;
    const std::string text = detokenize(vocabulary, std::span(tokens).last(count), ControlTokens::write);
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const std::string_view bytes = vocabulary.bytes(id);
      if (vocabulary.kind(id) != TokenKind::control && bytes.size() > text.size() && agree(bytes, text)) most = count;
    }
  }
  return most;
}

void expect_brute(Random& random, const Vocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  const std::size_t count = tokens_to_heal(vocabulary, tokens);
  ASSERT_EQ(count, brute_tokens_to_heal(vocabulary, tokens));
  if (count == 0) return;
  const std::string healed = detokenize(vocabulary, std::span(tokens).last(count), ControlTokens::write);
  std::string spelled;
  while (spelled.size() < healed.size()) {
    const std::string rest = healed.substr(spelled.size());
    const std::vector<TokenId> allowed = healing_tokens(vocabulary, rest);
    ASSERT_EQ(allowed, brute_healing_tokens(vocabulary, rest));
    ASSERT_FALSE(allowed.empty()) << "there is always a way on";
    spelled += vocabulary.bytes(allowed[static_cast<std::size_t>(random.below(std::ssize(allowed)))]);
  }
  ASSERT_TRUE(spelled.starts_with(healed));
}

TEST(Healing, is_brute_force_over_the_vocabulary_whatever_the_merges) {
  Random random(12);
  int healed = 0;
  const int rounds = small_scale() ? 30 : 300;
  for (int round = 0; round < rounds; ++round) {
    const auto vocabulary = make_vocabulary(random_merges(random, 3, 40, round % 2 == 0));
    for (int i = 0; i < 20; ++i) {
      std::vector<TokenId> tokens;
      for (std::int64_t n = random.below(9); n > 0; --n) {
        tokens.push_back(static_cast<TokenId>(random.below(vocabulary->size())));
      }
      expect_brute(random, *vocabulary, tokens);
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
      healed += tokens_to_heal(*vocabulary, tokens) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(healed, 100);
  promise("C18", with_commas(20 * rounds) + " prompts over vocabularies at random: brute force says the same");
}

TEST(Healing, is_brute_force_at_every_cut_of_a_text_inside_characters_too) {
  Random random(13);
  const Tokenizer tokenizer = make_tokenizer("smollm");
  const std::string text =
      "The answer is http://example.org, na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac\xf0\x9f\x98\x80 indeed";
  int inside = 0;
  for (std::size_t at = 1; at <= text.size(); ++at) {
    const std::vector<TokenId> tokens = tokenizer.encode(text.substr(0, at), Tokenizer::Specials::as_text);
    expect_brute(random, tokenizer.vocabulary(), tokens);
    ASSERT_FALSE(HasFatalFailure()) << "cut at " << at;
    const bool in_character = at < text.size() && (text[at] & 0xc0) == 0x80;
    inside += in_character && tokens_to_heal(tokenizer.vocabulary(), tokens) > 0 ? 1 : 0;
  }
  EXPECT_GT(inside, 0) << "some token reaches across a cut in a character";
}

// Else "a" could come, as a beginning of "ab", with nothing to follow it.
TEST(Healing, takes_back_only_what_single_bytes_can_spell_again) {
  VocabularyData data;
  data.model = "gpt2";
  data.pieces = {"ab", "abc", "a"};
  data.kinds.assign(3, TokenKind::normal);
  EXPECT_EQ(tokens_to_heal(*make_vocabulary(data), std::vector<TokenId>{0}), 0u);
  data.pieces.push_back("b");
  data.kinds.push_back(TokenKind::normal);
  EXPECT_EQ(tokens_to_heal(*make_vocabulary(data), std::vector<TokenId>{0}), 1u);
}

TEST(Healing, takes_no_control_token_and_nothing_that_no_token_reaches_beyond) {
  VocabularyData data = small_vocabulary_data("smollm");
  data.pieces.push_back("<|end|>");
  data.kinds.push_back(TokenKind::control);
  data.pieces.push_back("<|end|>>");
  data.kinds.push_back(TokenKind::normal);
  const auto vocabulary = make_vocabulary(std::move(data));
  const auto end = static_cast<TokenId>(vocabulary->size() - 2);
  EXPECT_EQ(tokens_to_heal(*vocabulary, std::vector<TokenId>{end}), 0u);
  EXPECT_EQ(tokens_to_heal(*vocabulary, std::vector<TokenId>{}), 0u);
  EXPECT_EQ(tokens_to_heal(*vocabulary, std::vector<TokenId>{end + 1}), 0u);
  const std::vector<TokenId> allowed = healing_tokens(*vocabulary, "<|end|>");
  EXPECT_EQ(std::ranges::count(allowed, end), 0);
  EXPECT_EQ(std::ranges::count(allowed, end + 1), 1);
}

}  // namespace
}  // namespace troupe::test
