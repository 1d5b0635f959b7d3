#include "runtime/text/tokenizer.h"

#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/text/detokenizer.h"
#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Specials = Tokenizer::Specials;

// Rows made by an independent program: tests/data/tokenizer/make_rows.py.
void expect_rows(const std::string& pre) {
  const Tokenizer tokenizer = test::make_tokenizer(pre);
  std::ifstream file(TROUPE_TEST_DATA "/tokenizer/" + pre + ".jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto ids = tokenizer.encode(text, row["parse"] ? Specials::parse : Specials::as_text);
    EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << "line " << rows + 1 << ": " << row["text"];
  }
  EXPECT_EQ(rows, 356);
}

TEST(Tokenizer, gpt2_equals_the_tokenizers_package) {
  expect_rows("gpt-2");
}

TEST(Tokenizer, llama3_equals_the_tokenizers_package) {
  expect_rows("llama-bpe");
}

TEST(Tokenizer, qwen2_equals_the_tokenizers_package) {
  expect_rows("qwen2");
}

TEST(Tokenizer, keeps_the_bytes_of_every_text) {
  test::Random random(3);
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    const Tokenizer tokenizer = test::make_tokenizer(pre);
    for (int i = 0; i < (test::small_scale() ? 30 : 300); ++i) {
      std::string text(static_cast<std::size_t>(random.below(300)), '\0');
      for (char& c : text) c = static_cast<char>(random.below(i % 2 == 0 ? 256 : 64) + (i % 2 == 0 ? 0 : 10));
      const auto specials = i % 3 == 0 ? Specials::parse : Specials::as_text;
      const auto ids = tokenizer.encode(text, specials);
      ASSERT_EQ(detokenize(tokenizer.vocabulary(), ids, ControlTokens::write), text) << pre;
    }
  }
}

TEST(Tokenizer, text_never_becomes_a_control_token) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::string text = "<|im_start|>system\n<|im_end|>\n<|im<|begin_of_text|> <tool_call>";
  for (TokenId id : tokenizer.encode(text, Specials::as_text)) EXPECT_EQ(vocabulary.kind(id), TokenKind::normal);
  int control = 0;
  for (TokenId id : tokenizer.encode(text, Specials::parse)) control += vocabulary.is_control(id);
  EXPECT_EQ(control, 4);
}

TEST(Tokenizer, the_longest_special_token_wins) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const auto bytes = [&](std::string_view text) {
    std::vector<std::string> out;
    for (TokenId id : tokenizer.encode(text, Specials::parse)) out.emplace_back(tokenizer.vocabulary().bytes(id));
    return out;
  };
  EXPECT_THAT(bytes("<|im_end|>\n"), ::testing::ElementsAre("<|im_end|>\n"));
  EXPECT_THAT(bytes("<|im_end|>"), ::testing::ElementsAre("<|im_end|>"));
  EXPECT_THAT(bytes("<|im!"), ::testing::ElementsAre("<|im", "!"));
}

TEST(Tokenizer, control_tokens_are_matched_wholly_inside_the_marked_ranges_only) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const std::string mark = "<|im_start|>";
  const std::string text = mark + mark + mark;
  const auto starts = [&](std::vector<Tokenizer::Range> ranges) {
    std::vector<std::size_t> at;
    std::size_t byte = 0;
    for (TokenId id : tokenizer.encode_marked(text, ranges)) {
      if (tokenizer.vocabulary().bytes(id) == mark) at.push_back(byte);
      byte += tokenizer.vocabulary().bytes(id).size();
    }
    EXPECT_EQ(byte, text.size());
    return at;
  };
  const std::size_t n = mark.size();
  EXPECT_THAT(starts({}), ::testing::ElementsAre());
  EXPECT_THAT(starts({{0, 3 * n}}), ::testing::ElementsAre(0u, n, 2 * n));
  EXPECT_THAT(starts({{0, n}, {2 * n, 3 * n}}), ::testing::ElementsAre(0u, 2 * n));
  EXPECT_THAT(starts({{n, 2 * n}}), ::testing::ElementsAre(n));
}

TEST(Tokenizer, text_between_two_control_tokens_is_one_stretch) {
  const Tokenizer tokenizer = test::make_tokenizer("qwen2");
  const std::string text = "<|im_start|>the river<|im_end|>";
  const std::vector<Tokenizer::Range> ranges = {{0, 14}, {18, text.size()}};  // "th" is the template's, "e ri" is not
  EXPECT_EQ(tokenizer.encode_marked(text, ranges), tokenizer.encode(text, Specials::parse));
}

TEST(Tokenizer, remembers_pieces_rightly_when_there_are_many) {
  const Tokenizer tokenizer = test::make_tokenizer("gpt-2");
  test::Random random(4);
  std::string text;
  std::vector<TokenId> expected;
  for (int i = 0; i < 40000; ++i) {  // more than are remembered
    const std::string piece =
        " " + test::random_text(random, "abcdefgh", static_cast<std::size_t>(1 + random.below(6)));
    const auto ids = tokenizer.encode(piece, Specials::as_text);
    text += piece;
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer.encode(text, Specials::as_text), expected);
}

TEST(Tokenizer, serves_many_threads_at_once) {
  const Tokenizer tokenizer = test::make_tokenizer("llama-bpe");
  test::Random random(8);
  const std::string text = test::random_text(random, "the river 123\n", 20000);
  const auto expected = tokenizer.encode(text, Specials::parse);
  std::vector<std::vector<TokenId>> ids(4);
  std::vector<std::thread> threads;
  for (auto& out : ids) threads.emplace_back([&] { out = tokenizer.encode(text, Specials::parse); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& out : ids) EXPECT_EQ(out, expected);
}

TEST(Tokenizer, another_kind_of_tokenizer_is_refused_and_named) {
  auto data = test::small_vocabulary_data("gpt-2");
  data.model = "llama";
  auto tokenizer = Tokenizer::create(test::make_vocabulary(data));
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::unsupported);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("'llama'"));
  EXPECT_THAT(tokenizer.error().message, HasSubstr("token ids"));
  auto unknown = Tokenizer::create(test::make_vocabulary(test::small_vocabulary_data("tekken")));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'tekken'"));
}

}  // namespace
}  // namespace troupe
