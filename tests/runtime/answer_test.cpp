#include "runtime/answer.h"

#include <gtest/gtest.h>

#include "runtime/conversation.h"
#include "runtime/text/byte_level.h"

namespace troupe {
namespace {

// One token a byte (id = byte), 256 <|im_end|> (an end), 257 <|tool|> (a control token that ends nothing).
std::shared_ptr<const Vocabulary> byte_vocabulary() {
  VocabularyData data;
  data.model = "gpt2";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    data.pieces.push_back(piece_of_bytes(std::string_view(&c, 1)));
    data.kinds.push_back(TokenKind::normal);
  }
  for (const char* control : {"<|im_end|>", "<|tool|>"}) {
    data.pieces.push_back(control);
    data.kinds.push_back(TokenKind::control);
  }
  auto vocabulary = Vocabulary::create(std::move(data));
  return std::make_shared<Vocabulary>(std::move(*vocabulary));
}

constexpr TokenId kEnd = 256, kTool = 257;

struct Fed {
  std::string streamed;
  Answer answer;
};

Fed feed(const TurnLimits& limits, const std::vector<TokenId>& tokens) {
  Fed fed{"", Answer(byte_vocabulary(), limits)};
  for (TokenId token : tokens) {
    fed.streamed += fed.answer.accept(token);
    if (fed.answer.reason() != FinishReason::none) break;
  }
  return fed;
}

std::vector<TokenId> bytes(std::string_view text) {
  std::vector<TokenId> tokens;
  for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::vector<TokenId> with(std::vector<TokenId> tokens, TokenId last) {
  tokens.push_back(last);
  return tokens;
}

TEST(Answer, ends_with_an_end_token_that_leaves_no_text) {
  const Fed fed = feed({}, with(bytes("hello"), kEnd));
  EXPECT_EQ(fed.answer.reason(), FinishReason::end_token);
  EXPECT_EQ(fed.streamed, "hello");
  EXPECT_EQ(fed.answer.text(), "hello");
  EXPECT_EQ(fed.answer.keep(), 6u) << "the end token stays in the history";
}

TEST(Answer, ends_with_a_token_that_the_caller_named) {
  EXPECT_EQ(feed({.end_tokens = {'!'}}, bytes("hi! there")).streamed, "hi");
}

TEST(Answer, ends_at_its_limit_with_all_that_was_held) {
  const Fed fed = feed({.max_tokens = 4, .stop = {"lots"}}, bytes("hello"));
  EXPECT_EQ(fed.answer.reason(), FinishReason::length);
  EXPECT_EQ(fed.streamed, "hell");
}

TEST(Answer, never_releases_half_a_character) {
  Answer answer(byte_vocabulary(), {});
  EXPECT_EQ(answer.accept(0xe2), "");
  EXPECT_EQ(answer.accept(0x82), "");
  EXPECT_EQ(answer.accept(0xac), "\xe2\x82\xac");
  EXPECT_EQ(answer.accept(0xe2), "");
  EXPECT_EQ(answer.end(FinishReason::length), "\xef\xbf\xbd") << "cut there, it can only be a replacement character";
}

TEST(Answer, shows_no_control_token) {
  EXPECT_EQ(feed({.max_tokens = 3}, {'a', kTool, 'b'}).streamed, "ab");
}

TEST(Answer, cuts_at_a_stop_string_and_keeps_the_tokens_before_it) {
  const Fed fed = feed({.stop = {"END"}}, bytes("some textEND and more"));
  EXPECT_EQ(fed.answer.reason(), FinishReason::stop_string);
  EXPECT_EQ(fed.streamed, "some text");
  EXPECT_EQ(fed.answer.keep(), 9u);
  EXPECT_EQ(fed.answer.leftover(), "");
}

TEST(Answer, releases_what_only_looked_like_a_stop_string) {
  EXPECT_EQ(feed({.max_tokens = 8, .stop = {"ENDING"}}, bytes("an END..")).streamed, "an END..");
}

TEST(Answer, bans_end_tokens_until_the_least_number_is_there) {
  Answer answer(byte_vocabulary(), {.min_tokens = 2});
  EXPECT_EQ(answer.no_end_for(0), 2);
  answer.accept('a');
  EXPECT_EQ(answer.no_end_for(1), 1);
  EXPECT_EQ(answer.no_end_for(2), 0) << "a step may be sent before the token before it is accepted";
  answer.accept('b');
  EXPECT_EQ(answer.no_end_for(3), 0);
  EXPECT_GT(Answer(byte_vocabulary(), {.ignore_eos = true}).no_end_for(2), 1'000'000);
}

TEST(TurnLimits, refuse_what_is_out_of_range_by_name) {
  EXPECT_TRUE(TurnLimits{}.validate(10));
  EXPECT_FALSE(TurnLimits{.max_tokens = -1}.validate(10));
  EXPECT_FALSE(TurnLimits{.min_tokens = -1}.validate(10));
  EXPECT_FALSE(TurnLimits{.stop = {""}}.validate(10));
  EXPECT_FALSE((TurnLimits{.stop = std::vector<std::string>(17, "x")}.validate(10)));
  EXPECT_FALSE(TurnLimits{.end_tokens = {10}}.validate(10));
}

// -- Conversation -----------------------------------------------------------------------------------------------------

TEST(Conversation, takes_a_turn_that_got_no_token_back_whole) {
  Conversation conversation("system text");
  const PromptJob job = conversation.message_job({"user", "hello"});
  conversation.begin(job, {0, {1, 2, 3}, "abc"});
  EXPECT_EQ(conversation.messages().size(), 2u);
  conversation.back();
  EXPECT_EQ(conversation.messages().size(), 1u);
  EXPECT_TRUE(conversation.tokens().empty());
  EXPECT_EQ(conversation.text(), "");
}

TEST(Conversation, keeps_the_answer_as_it_was_given_and_its_tokens_up_to_the_stop) {
  const auto vocabulary = byte_vocabulary();
  Conversation conversation("");
  conversation.begin(conversation.message_job({"user", "q"}), {0, bytes("<q>"), "<q>"});
  const Fed fed = feed({.stop = {"."}}, bytes("yes. no"));
  for (TokenId token : fed.answer.tokens()) conversation.add(token);
  conversation.end(fed.answer, *vocabulary);
  EXPECT_EQ(conversation.text(), "<q>yes");
  EXPECT_EQ(conversation.tokens(), bytes("<q>yes"));
  ASSERT_EQ(conversation.messages().size(), 2u);
  EXPECT_EQ(conversation.messages()[1].content, "yes");
}

}  // namespace
}  // namespace troupe
