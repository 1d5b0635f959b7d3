#include "runtime/text/vocabulary.h"

#include <gmock/gmock.h>

#include "runtime/text/byte_level.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a b c ab "Ġ" <|im_end|> <tool> (unused) é
VocabularyData small() {
  VocabularyData data;
  data.model = "gpt2";
  data.pre = "gpt-2";
  data.pieces = {"a", "b", "c", "ab", "\xc4\xa0", "<|im_end|>", "<tool>", "[PAD]", "\xc3\xa9"};
  data.kinds = {TokenKind::normal,  TokenKind::normal,       TokenKind::normal, TokenKind::normal, TokenKind::normal,
                TokenKind::control, TokenKind::user_defined, TokenKind::unused, TokenKind::normal};
  data.merges = {"a b"};
  return data;
}

std::string refusal(VocabularyData data) {
  auto vocabulary = Vocabulary::create(std::move(data));
  if (vocabulary) return "accepted";
  EXPECT_EQ(vocabulary.error().code, ErrorCode::bad_input);
  return vocabulary.error().message;
}

TEST(ByteLevel, maps_every_byte_to_a_character_and_back) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(bytes_of_piece(piece_of_bytes(bytes)), bytes) << byte;
  }
  EXPECT_EQ(piece_of_bytes(" \n"), "\xc4\xa0\xc4\x8a");  // U+0120, U+010A: GPT-2's table
  EXPECT_EQ(piece_of_bytes("\xad"), "\xc5\x83");         // the last of the 68 that do not stand for themselves
}

TEST(ByteLevel, knows_no_other_characters) {
  for (const char* piece : {" ", "\n", "\xc2\xad", "\xc5\x84", "\xe4\xb8\xad", "\xc4", "\xff"}) {
    EXPECT_EQ(bytes_of_piece(piece), std::nullopt) << piece;
  }
}

TEST(Vocabulary, gives_the_exact_bytes_of_every_kind_of_token) {
  const auto vocabulary = test::make_vocabulary(small());
  EXPECT_EQ(vocabulary->size(), 9);
  EXPECT_EQ(vocabulary->bytes(3), "ab");
  EXPECT_EQ(vocabulary->bytes(4), " ");
  EXPECT_EQ(vocabulary->bytes(5), "<|im_end|>");
  EXPECT_EQ(vocabulary->bytes(8), "\xe9");
  EXPECT_TRUE(vocabulary->is_control(5));
  EXPECT_FALSE(vocabulary->is_control(6));
  EXPECT_THAT(vocabulary->special_tokens(), ElementsAre(5, 6));
}

TEST(Vocabulary, never_finds_a_control_token_by_its_text) {
  const auto vocabulary = test::make_vocabulary(small());
  EXPECT_EQ(vocabulary->find("ab"), 3);
  EXPECT_EQ(vocabulary->find(" "), 4);
  EXPECT_EQ(vocabulary->find("<|im_end|>"), std::nullopt);
  EXPECT_EQ(vocabulary->find("[PAD]"), std::nullopt);
  EXPECT_EQ(vocabulary->find(""), std::nullopt);
}

TEST(Vocabulary, a_piece_outside_the_alphabet_is_not_taken_for_bytes) {
  auto data = small();
  data.pieces[2] = "\xe4\xb8\xad";  // a character, where byte-level BPE would write three
  const auto vocabulary = test::make_vocabulary(std::move(data));
  EXPECT_EQ(vocabulary->bytes(2), "\xe4\xb8\xad");
  EXPECT_EQ(vocabulary->find("\xe4\xb8\xad"), std::nullopt);
}

TEST(Vocabulary, an_answer_ends_by_what_the_file_says_and_by_known_marks) {
  auto data = small();
  data.eos = 2;
  data.eot = 2;
  const auto vocabulary = test::make_vocabulary(std::move(data));
  EXPECT_THAT(vocabulary->end_tokens(), ElementsAre(5, 2));
  EXPECT_TRUE(vocabulary->ends_answer(2));
  EXPECT_TRUE(vocabulary->ends_answer(5));
  EXPECT_FALSE(vocabulary->ends_answer(0));
}

TEST(Vocabulary, a_known_end_mark_that_is_plain_text_ends_nothing) {
  auto data = small();
  data.kinds[5] = TokenKind::normal;
  EXPECT_TRUE(test::make_vocabulary(std::move(data))->end_tokens().empty());
}

TEST(Vocabulary, refuses_what_does_not_fit_together) {
  EXPECT_THAT(refusal(VocabularyData{}), HasSubstr("empty"));
  auto data = small();
  data.kinds.pop_back();
  EXPECT_THAT(refusal(data), HasSubstr("8 entries for 9 tokens"));
  for (TokenId id : {-1, 9}) {
    data = small();
    data.eom = id;
    EXPECT_THAT(refusal(data), HasSubstr("eom_token_id is " + std::to_string(id)));
  }
  data = small();
  data.pieces[2] = "a";
  EXPECT_THAT(refusal(data), HasSubstr("tokens 0 and 2"));
}

TEST(Vocabulary, refuses_merges_that_text_cannot_become) {
  for (const char* merge : {"", "ab", "a", "a ", " a", "a x", "x a", "b a", "a b c", "a  b", "< |im_end|>", "\xff b"}) {
    auto data = small();
    data.merges.push_back(merge);
    EXPECT_THAT(refusal(data), HasSubstr("entry 1 of tokenizer.ggml.merges")) << merge;
  }
}

TEST(Vocabulary, another_model_keeps_its_pieces_and_may_repeat_them) {
  auto data = small();
  data.model = "llama";
  data.pieces[1] = "a";
  data.merges = {"no merge"};
  const auto vocabulary = test::make_vocabulary(std::move(data));
  EXPECT_EQ(vocabulary->bytes(4), "\xc4\xa0");
  EXPECT_TRUE(vocabulary->merges().empty());
}

}  // namespace
}  // namespace troupe
