// Saved chats: what /save may touch and what it leaves, and what /load refuses.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class ChatFile : public Program {
 protected:
  ChatFile() { fs::create_directory(folder_.file("box")); }

  std::string file(const std::string& name) const { return folder_.file("box/" + name); }

  Ended chat(const std::string& lines, const std::string& shell = "") {
    std::ofstream(folder_.file("lines")) << lines;
    return run(shell + "$B/troupe run $M --max-tokens 4 < " + folder_.file("lines"));
  }
  Ended save(const std::string& name, const std::string& shell = "") {
    return chat("hello\n/save " + file(name) + "\n", shell);
  }

  std::string text_of(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  bool is_chat(const std::string& name) const { return nlohmann::json::accept(text_of(name)); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(file("")), {})); }

  // A saved chat with one thing changed, loaded after a message of another conversation.
  Ended load_changed(const std::string& key, const nlohmann::json& value) {
    EXPECT_EQ(save("base").code, 0);
    auto json = nlohmann::json::parse(text_of("base"));
    json[key] = value;
    std::ofstream(file("changed")) << json;
    return chat("present\n/load " + file("changed") + "\n/save " + file("after") + "\n");
  }
  void expect_refused(const Ended& ended, const std::string& why) {
    EXPECT_EQ(ended.code, 1) << why;
    EXPECT_THAT(ended.err, HasSubstr(file("changed")));
    EXPECT_THAT(ended.err, HasSubstr(why));
    EXPECT_EQ(nlohmann::json::parse(text_of("after"))["messages"][0]["content"], "present") << why;
  }
};

TEST_F(ChatFile, is_written_under_the_name_without_the_blanks_behind_it) {
  EXPECT_EQ(save("chat \t").code, 0);
  EXPECT_TRUE(is_chat("chat"));
  EXPECT_EQ(files(), 1u) << "and nothing else is left";
  struct stat found {};
  ASSERT_EQ(::stat(file("chat").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u) << "a chat is its owner's";
}

TEST_F(ChatFile, never_replaces_what_is_no_regular_file) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  for (const std::string name : {"pipe", ""}) {
    const Ended ended = save(name);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr("not a regular file"));
  }
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
  EXPECT_THAT(chat("/load " + file("pipe") + "\n").err, HasSubstr("not a regular file"));
}

TEST_F(ChatFile, keeps_the_mode_of_the_file_and_what_stands_beside_it) {
  std::ofstream(file("chat")) << "old";
  std::ofstream(file("chat.part")) << "mine";
  ASSERT_EQ(::chmod(file("chat").c_str(), 0640), 0);
  EXPECT_EQ(save("chat").code, 0);
  EXPECT_TRUE(is_chat("chat"));
  EXPECT_EQ(text_of("chat.part"), "mine");
  EXPECT_EQ(fs::status(file("chat")).permissions(), fs::perms(0640));
}

TEST_F(ChatFile, follows_a_link_and_refuses_one_to_nothing) {
  std::ofstream(file("chat")) << "old";
  fs::create_symlink("chat", file("link"));
  fs::create_symlink("nothing", file("loose"));
  EXPECT_EQ(save("link").code, 0);
  EXPECT_TRUE(fs::is_symlink(file("link")));
  EXPECT_TRUE(is_chat("chat"));
  EXPECT_THAT(save("loose").err, HasSubstr("a link to nothing"));
  EXPECT_TRUE(fs::is_symlink(file("loose")));
}

TEST_F(ChatFile, leaves_the_old_file_and_nothing_else_when_the_new_one_cannot_be_written) {
  std::ofstream(file("chat")) << "old";
  const std::string message(6000, 'x');
  const Ended ended = chat("/system " + message + "\n/save " + file("chat") + "\n", "ulimit -f 2; ");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("chat: cannot write: File too large"));
  EXPECT_EQ(text_of("chat"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(ChatFile, is_refused_when_a_part_of_it_is_none) {
  expect_refused(load_changed("troupe_chat", 2), "another version than 1");
  expect_refused(load_changed("troupe_chat", true), "another version than 1");
  expect_refused(load_changed("tokens", {1, 1.5}), "token 1 is no token's number");
  expect_refused(load_changed("tokens", {1LL << 40}), "token 0 is no token's number");
  expect_refused(load_changed("tokens", {100000}), "outside the vocabulary");
  expect_refused(load_changed("fingerprint", "xyz"), "no hexadecimal number");
  expect_refused(load_changed("messages", {{{"role", "wizard"}, {"content", ""}}}), "unknown role 'wizard'");
  expect_refused(load_changed("messages", 5), "not a saved chat");
}

TEST_F(ChatFile, goes_on_by_its_text_alone_with_another_model) {
  const Ended other = load_changed("fingerprint", "1");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("its tokens are made anew"));
  const auto after = nlohmann::json::parse(text_of("after"));
  EXPECT_EQ(after["messages"][0]["content"], "hello");
  EXPECT_TRUE(after["tokens"].empty());
  EXPECT_THAT(chat("/load " + file("base") + "\n").err, Not(HasSubstr("anew"))) << "of this model";
}

}  // namespace
}  // namespace troupe::test
