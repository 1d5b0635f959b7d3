// The chat as a script pipes it in: commands, limits, and the exit code that tells the script how it went.
#include <fstream>
#include <gmock/gmock.h>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/troupe/caught.h"
#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Chat : public Program {
 protected:
  Ended chat(const std::string& lines, const std::string& flags = "--max-tokens 4") {
    std::ofstream(folder_.file("lines")) << lines;
    return run("$B/troupe run $M " + flags + " < " + folder_.file("lines"));
  }

  nlohmann::json messages_after(const std::string& lines, const std::string& flags = "--max-tokens 4") {
    const std::string file = folder_.file("chat.json");
    const Ended ended = chat(lines + "/save " + file + "\n", flags);
    EXPECT_THAT(ended.err, HasSubstr("(saved)"));
    return nlohmann::json::parse(std::ifstream(file))["messages"];
  }
};

TEST_F(Chat, ends_with_1_when_a_command_failed_and_does_the_rest) {
  const Ended ended = chat("/save /no/such/folder/chat.json\nhello\n/stats\n");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("No such file or directory"));
  EXPECT_THAT(ended.err, HasSubstr("last answer:"));
  EXPECT_THAT(ended.err, HasSubstr("conversation: turns 1, "));
  EXPECT_EQ(chat("/stats\n/help\n/reset\n/quit\nnever read\n").code, 0);
}

TEST_F(Chat, takes_only_a_slash_and_letters_for_a_command) {
  const auto messages = messages_after("/etc/passwd is a file\n");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0]["content"], "/etc/passwd is a file");
  const Ended unknown = chat("/foo bar\n");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("/foo is no command; /help lists them"));
  EXPECT_THAT(chat("/seed\t7  \r\n").err, HasSubstr("(seed 7)")) << "any blanks";
}

TEST_F(Chat, takes_whole_numbers_for_seeds_and_nothing_else) {
  EXPECT_EQ(chat("/seed 18446744073709551615\n").code, 0);
  for (const char* wrong : {"-1", "18446744073709551616", "7 x", "1.5", ""}) {
    const Ended ended = chat("/seed " + std::string(wrong) + "\n");
    EXPECT_EQ(ended.code, 1) << wrong;
    EXPECT_THAT(ended.err, HasSubstr("/seed wants a whole number from 0 to")) << wrong;
  }
}

TEST_F(Chat, says_what_to_do_when_the_context_is_full) {
  const Ended full = chat("hello\nand more\n", "--context 64");
  EXPECT_EQ(full.code, 1) << "the second message has no room";
  EXPECT_THAT(full.err, HasSubstr("(cut: the context of 64 tokens is full; /reset"));
  EXPECT_THAT(full.err, HasSubstr("the context holds 64"));
  EXPECT_THAT(full.err, HasSubstr("--context at the start"));
  const Ended cut = chat("hello\n", "--context 64 --max-tokens 3");
  EXPECT_THAT(cut.err, HasSubstr("(cut: --max-tokens 3 is reached)"));
  EXPECT_THAT(cut.err, Not(HasSubstr("is full")));
}

TEST_F(Chat, goes_on_past_its_window_and_says_what_is_seen_no_more) {
  const Ended ended = chat("hello\nand more\n", "--context 128 --window 64 --max-tokens 90");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("tokens are seen no more)"));
  EXPECT_THAT(ended.err, Not(HasSubstr("is full")));
  const Ended refused = chat("hello\n", "--context 128 --window 129");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("16 to 128 tokens"));
}

TEST_F(Chat, keeps_an_emptied_system_message_empty) {
  const auto with = messages_after("/reset\n", "--system Brief.");
  ASSERT_EQ(with.size(), 1u);
  EXPECT_EQ(with[0]["content"], "Brief.");
  EXPECT_TRUE(messages_after("/system\n/reset\n", "--system Brief.").empty());
  EXPECT_TRUE(messages_after("/system \"\"\n/reset\n", "--system Brief.").empty());
  EXPECT_EQ(messages_after("/system Other.\n/reset\n", "--system Brief.")[0]["content"], "Other.");
}

TEST_F(Chat, leaves_its_input_alone_when_told_to_load_it) {
  const Ended ended = chat("/load -\n/seed 5\n");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("/load wants the name of a file"));
  EXPECT_THAT(ended.err, HasSubstr("(seed 5)")) << "the next line is still read";
}

TEST_F(Chat, tells_of_an_input_that_cannot_be_read) {
  const Ended ended = run("$B/troupe run $M < /tmp");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot read the messages: Is a directory"));
}

TEST_F(Chat, stops_when_its_result_cannot_be_written) {
  std::ofstream(folder_.file("lines")) << "hello\n/stats\n";
  const Ended ended = run("$B/troupe run $M --max-tokens 4 > /dev/full < " + folder_.file("lines"));
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("troupe: cannot write the result: No space left on device"));
  EXPECT_THAT(ended.err, Not(HasSubstr("last answer"))) << "no more work for nobody";
}

TEST(Caught, turns_an_exception_into_a_sentence_and_hands_results_on) {
  EXPECT_TRUE(app::caught([]() -> Result<void> { return {}; }));
  EXPECT_EQ(app::caught([]() -> Result<void> { return Error{ErrorCode::busy, "x"}; }).error().code, ErrorCode::busy);
  EXPECT_EQ(app::caught([]() -> Result<void> { throw std::bad_alloc(); }).error().code, ErrorCode::out_of_memory);
  EXPECT_THAT(app::caught([]() -> Result<void> { throw std::runtime_error("no threads"); }).error().message,
              HasSubstr("a fault of its own: no threads"));
}

}  // namespace
}  // namespace troupe::test
