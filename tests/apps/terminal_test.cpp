// The chat as somebody types it: characters, keys and signals at a terminal.
#include <chrono>
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/apps/program.h"
#include "tests/apps/pty_program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char *kCtrlC = "\x03", *kCtrlD = "\x04", *kPrompt = ">>> ";
constexpr const char *kColor = "\033[36m", *kColorEnd = "\033[0m";

class Terminal : public Program {
 protected:
  PtyProgram start(const std::vector<std::string>& flags, std::vector<std::string> environment = {}) {
    environment.emplace_back("TERM=xterm");
    std::vector<std::string> command = {TROUPE_BIN "/troupe", "run", model_};
    command.insert(command.end(), flags.begin(), flags.end());
    return PtyProgram(command, environment);
  }

  // Of this model an answer goes on until it is stopped.
  void use_endless_model() {
    TinyModel model = tiny_model(DType::q8_0);
    model.context = 1 << 17;
    model_ = write_tiny_model(model, folder_.file("endless.gguf"));
  }

  // The first message of the conversation, by way of a file.
  std::string first_message(PtyProgram& program) {
    const std::string file = folder_.file("chat.json");
    program.type("/save " + file + "\r");
    EXPECT_TRUE(program.shows("(saved)")) << program.screen();
    return nlohmann::json::parse(std::ifstream(file))["messages"][0]["content"];
  }
};

bool is_as_shells_have_it(const termios& mode) {
  return (mode.c_lflag & ICANON) != 0 && (mode.c_lflag & ECHO) != 0;
}

TEST_F(Terminal, takes_every_character_whatever_the_locale) {
  for (const std::vector<std::string>& locale : {std::vector<std::string>{}, {"LC_ALL=C"}, {"LC_ALL=no_SUCH"}}) {
    PtyProgram program = start({"--max-tokens", "2"}, locale);
    ASSERT_TRUE(program.shows(kPrompt)) << program.screen();
    program.type("größe 日本\r");
    ASSERT_TRUE(program.shows(kColorEnd)) << program.screen();
    EXPECT_EQ(first_message(program), "größe 日本");
  }
}

TEST_F(Terminal, replaces_bytes_that_are_no_character) {
  PtyProgram program = start({"--max-tokens", "2"});
  ASSERT_TRUE(program.shows(kPrompt));
  program.type(
      "a\xff"
      "b\r");
  ASSERT_TRUE(program.shows(kColorEnd));
  EXPECT_EQ(first_message(program), "a\uFFFDb");
}

TEST_F(Terminal, clears_the_line_at_the_first_interrupt_and_leaves_at_the_second) {
  PtyProgram program = start({"--max-tokens", "2"});
  ASSERT_TRUE(program.shows(kPrompt));
  program.type("half a line");
  ASSERT_TRUE(program.shows("half a line"));
  program.type(kCtrlC);
  ASSERT_TRUE(program.shows("(Ctrl-C again, Ctrl-D or /quit to leave)")) << program.screen();
  ASSERT_TRUE(program.shows(kPrompt));
  program.type("whole\r");
  ASSERT_TRUE(program.shows(kColorEnd));
  EXPECT_EQ(first_message(program), "whole");
  ASSERT_TRUE(program.shows(kPrompt));
  program.type(kCtrlC);
  ASSERT_TRUE(program.shows("Ctrl-C again")) << "what was typed between takes the warning back";
  ASSERT_TRUE(program.shows(kPrompt));
  program.type(kCtrlC);
  EXPECT_EQ(program.ended(), 130);
  EXPECT_TRUE(is_as_shells_have_it(program.mode()));
}

TEST_F(Terminal, leaves_with_0_by_quit_and_by_the_end_of_the_input) {
  for (const char* keys : {"/quit\r", kCtrlD}) {
    PtyProgram program = start({});
    ASSERT_TRUE(program.shows(kPrompt));
    program.type(keys);
    EXPECT_EQ(program.ended(), 0);
  }
}

TEST_F(Terminal, stops_an_answer_at_an_interrupt_and_goes_on) {
  use_endless_model();
  PtyProgram program = start({});
  ASSERT_TRUE(program.shows(kPrompt));
  program.type("hello\r");
  ASSERT_TRUE(program.shows(kColor)) << program.screen();
  program.type(kCtrlC);
  ASSERT_TRUE(program.shows(kColorEnd));
  EXPECT_EQ(first_message(program), "hello");
  program.type("/quit\r");
  EXPECT_EQ(program.ended(), 0);
}

TEST_F(Terminal, gets_its_mode_and_colour_back_when_the_program_is_ended_by_force) {
  use_endless_model();
  PtyProgram answering = start({});
  ASSERT_TRUE(answering.shows(kPrompt));
  answering.type("hello\r");
  ASSERT_TRUE(answering.shows(kColor));
  answering.send(SIGTERM);
  EXPECT_EQ(answering.ended(), 128 + SIGTERM);
  EXPECT_THAT(answering.screen(), HasSubstr(kColorEnd));

  PtyProgram waiting = start({});
  ASSERT_TRUE(waiting.shows(kPrompt));
  for (int i = 0; i < 1000 && is_as_shells_have_it(waiting.mode()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(is_as_shells_have_it(waiting.mode())) << "keys come one by one";
  waiting.send(SIGHUP);
  EXPECT_EQ(waiting.ended(), 128 + SIGHUP);
  EXPECT_TRUE(is_as_shells_have_it(waiting.mode()));
}

TEST_F(Terminal, keeps_the_line_over_a_suspension_and_another_size) {
  PtyProgram program = start({"--max-tokens", "2"});
  ASSERT_TRUE(program.shows(kPrompt));
  program.type("hel");
  ASSERT_TRUE(program.shows("hel"));
  program.send(SIGSTOP);
  program.send(SIGCONT);
  ASSERT_TRUE(program.shows("hel")) << "drawn again";
  program.resize(40);
  ASSERT_TRUE(program.shows("hel")) << "drawn again";
  program.type("lo\r");
  ASSERT_TRUE(program.shows(kColorEnd)) << program.screen();
  EXPECT_EQ(first_message(program), "hello");
}

TEST_F(Terminal, shows_no_colour_to_who_wants_none) {
  PtyProgram program = start({"--max-tokens", "2"}, {"NO_COLOR=1"});
  ASSERT_TRUE(program.shows(kPrompt));
  program.type("hello\r");
  ASSERT_TRUE(program.shows(kPrompt));
  EXPECT_THAT(program.screen(), Not(HasSubstr(kColor)));
}

TEST_F(Terminal, ends_a_completion_with_130_at_an_interrupt) {
  use_endless_model();
  const std::string troupe = TROUPE_BIN "/troupe";
  PtyProgram program({troupe, "complete", model_, "-p", "Once", "--echo"}, {"TERM=xterm"});
  ASSERT_TRUE(program.shows("Once"));
  program.type(kCtrlC);
  EXPECT_EQ(program.ended(), 130);
}

}  // namespace
}  // namespace troupe::test
