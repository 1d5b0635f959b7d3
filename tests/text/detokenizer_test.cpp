#include "runtime/text/detokenizer.h"

#include <gmock/gmock.h>

#include "runtime/text/tokenizer.h"
#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

std::string replaced(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.push(bytes);
  return out + stream.flush();
}

TEST(Utf8Stream, keeps_whole_characters_and_replaces_each_bad_sequence_once) {
  EXPECT_EQ(replaced("a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"), "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
  // Unicode 15, table 3-8: one U+FFFD for each maximal part of a character.
  EXPECT_EQ(replaced("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"),
            "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "b\xef\xbf\xbd"
            "c\xef\xbf\xbd\xef\xbf\xbd"
            "d");
  EXPECT_EQ(replaced("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(replaced("\xe4\xb8"), "\xef\xbf\xbd");
}

TEST(Utf8Stream, gives_the_same_however_the_bytes_are_cut) {
  test::Random random(5);
  const std::string_view alphabet = "a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\xed\xa0\xff\xf4\x90";
  for (int i = 0; i < (test::small_scale() ? 100 : 2000); ++i) {
    const auto text = test::random_text(random, alphabet, static_cast<std::size_t>(random.below(20)));
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      Utf8Stream stream;
      const std::string first = stream.push(std::string_view(text).substr(0, cut));
      ASSERT_EQ(utf8_valid_prefix(first), first.size());
      const std::string second = stream.push(std::string_view(text).substr(cut));
      ASSERT_EQ(first + second + stream.flush(), replaced(text)) << "cut at " << cut;
    }
  }
}

TEST(Utf8, knows_the_well_formed_characters_of_unicode) {
  for (const char* good : {"a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(utf8_character(good), std::string_view(good).size()) << good;
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xc2", "\xc2\x41"}) {
    EXPECT_EQ(utf8_character(bad), 0u) << bad;
  }
  EXPECT_TRUE(utf8_incomplete("\xf0\x9f\x98"));
  EXPECT_FALSE(utf8_incomplete("\xf0\x8f"));
  EXPECT_FALSE(utf8_incomplete(""));
}

TEST(Detokenizer, never_cuts_a_character_that_tokens_cut) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const std::string text = "x\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 \xe0\xa4\x95\xe0\xa5\x8d !";
  const auto vocabulary = test::make_vocabulary(test::small_vocabulary_data("qwen2"));
  Detokenizer detokenizer(vocabulary, ControlTokens::write);
  std::string out;
  int held = 0;
  for (TokenId id : tokenizer.encode(text, Tokenizer::Specials::as_text)) {
    const std::string released = detokenizer.push(id);
    EXPECT_EQ(utf8_valid_prefix(released), released.size());
    held += released.empty();
    out += released;
  }
  EXPECT_GT(held, 0);
  EXPECT_EQ(out + detokenizer.flush(), text);
}

TEST(Detokenizer, writes_or_skips_control_tokens) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const auto vocabulary = test::make_vocabulary(test::small_vocabulary_data("qwen2"));
  const std::string text = "<|im_start|>hi<tool_call><|im_end|>";
  const auto ids = tokenizer.encode(text, Tokenizer::Specials::parse);
  EXPECT_EQ(detokenize(*vocabulary, ids, ControlTokens::write), text);
  EXPECT_EQ(detokenize(*vocabulary, ids, ControlTokens::skip), "hi<tool_call>");
  Detokenizer detokenizer(vocabulary, ControlTokens::skip);
  std::string out;
  for (TokenId id : ids) out += detokenizer.push(id);
  EXPECT_EQ(out + detokenizer.flush(), "hi<tool_call>");
}

}  // namespace
}  // namespace troupe
