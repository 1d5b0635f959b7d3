#include "runtime/text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> pieces(const std::string& name, std::string_view text) {
  auto pre = PreTokenizer::create(name);
  std::vector<std::string> out;
  (*pre).split(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

TEST(PreTokenizer, gpt2_keeps_contractions_words_numbers_and_signs_apart) {
  EXPECT_THAT(pieces("gpt-2", "I'll pay 1234, don'T"), ElementsAre("I", "'ll", " pay", " 1234", ",", " don", "'", "T"));
  EXPECT_EQ(pieces("default", "a  b 1"), pieces("gpt-2", "a  b 1"));
  EXPECT_EQ(pieces("", "a  b 1"), pieces("gpt-2", "a  b 1"));
}

TEST(PreTokenizer, smollm_takes_every_digit_alone_and_what_lies_between_as_text_of_its_own) {
  EXPECT_THAT(pieces("smollm", "a 12  3\n4.5"), ElementsAre("a", " ", "1", "2", "  ", "3", "\n", "4", ".", "5"));
  EXPECT_THAT(pieces("smollm", "  a  "), ElementsAre(" ", " a", "  "));
}

TEST(PreTokenizer, llama3_takes_digits_by_three_and_newlines_with_signs) {
  EXPECT_THAT(pieces("llama-bpe", "12345 WE'LL.\n\n x"), ElementsAre("123", "45", " WE", "'LL", ".\n\n", " x"));
}

TEST(PreTokenizer, qwen2_differs_from_llama3_in_its_digits) {
  EXPECT_THAT(pieces("qwen2", "12 WE'LL.\n\n x"), ElementsAre("1", "2", " WE", "'LL", ".\n\n", " x"));
}

TEST(PreTokenizer, only_llama3_prefers_whole_tokens_to_merges) {
  EXPECT_TRUE((*PreTokenizer::create("llama-bpe")).ignores_merges());
  EXPECT_FALSE((*PreTokenizer::create("qwen2")).ignores_merges());
}

TEST(PreTokenizer, whitespace_is_what_unicode_calls_so) {
  EXPECT_THAT(pieces("gpt-2", "x\xe3\x80\x80\xe3\x80\x80y"), ElementsAre("x", "\xe3\x80\x80", "\xe3\x80\x80", "y"));
  EXPECT_THAT(pieces("gpt-2", "x \xe1\xa0\x8e!"), ElementsAre("x", " \xe1\xa0\x8e!"));  // U+180E was one until 6.3
}

TEST(PreTokenizer, bytes_that_are_not_utf8_stand_alone_and_hide_nothing) {
  EXPECT_THAT(pieces("gpt-2", "ab\xff\xfe cd\xe4\xb8"), ElementsAre("ab", "\xff\xfe", " cd", "\xe4\xb8"));
  EXPECT_THAT(pieces("gpt-2", "\xed\xa0\x80x"), ElementsAre("\xed\xa0\x80", "x"));  // half a surrogate pair
}

TEST(PreTokenizer, pieces_together_are_the_text) {
  test::Random random(2);
  const std::string_view alphabet = "ab1 \n\r'st.\xc3\xa9\xe4\xb8\xad\xff\xf0\x9f\x98\x80\x00\xe3\x80";
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    for (int i = 0; i < (test::small_scale() ? 50 : 500); ++i) {
      const auto text = test::random_text(random, alphabet, static_cast<std::size_t>(random.below(60)));
      std::string joined;
      for (const std::string& piece : pieces(name, text)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text) << name;
    }
  }
}

TEST(PreTokenizer, megabytes_of_one_thing_are_one_piece) {
  const std::size_t size = (test::small_scale() ? 1u : 8u) << 20;
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    EXPECT_EQ(pieces(name, std::string(size, 'a')).size(), 1u) << name;
    EXPECT_EQ(pieces(name, std::string(size, ' ')).size(), 1u) << name;
    EXPECT_EQ(pieces(name, std::string(size, '\n')).size(), 1u) << name;
    EXPECT_EQ(pieces(name, std::string(size, '!')).size(), 1u) << name;
    EXPECT_EQ(pieces(name, std::string(size, '\xff')).size(), 1u) << name;
  }
}

TEST(PreTokenizer, an_unknown_name_is_refused_with_the_known_ones) {
  auto pre = PreTokenizer::create("tekken");
  ASSERT_FALSE(pre);
  EXPECT_EQ(pre.error().code, ErrorCode::unsupported);
  EXPECT_THAT(pre.error().message, HasSubstr("'tekken'"));
  EXPECT_THAT(pre.error().message, HasSubstr("llama-bpe"));
  EXPECT_THAT(pre.error().message, HasSubstr("token ids"));
}

}  // namespace
}  // namespace troupe
