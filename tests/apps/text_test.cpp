// Texts from files and pipes: how they are read, what is refused, and how a line of a request is judged.
#include <fstream>
#include <gmock/gmock.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Texts : public Program {
 protected:
  void expect_refused(const std::string& command, const std::string& sentence) {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 1) << command;
    EXPECT_EQ(ended.out, "") << command;
    EXPECT_THAT(ended.err, AllOf(StartsWith("troupe: "), HasSubstr(sentence))) << command;
  }
  std::string perplexity_of(const std::string& text) {
    std::ofstream(folder_.file("text"), std::ios::binary) << text;
    const Ended ended = run("$B/troupe perplexity $M " + folder_.file("text"));
    EXPECT_EQ(ended.err.find('\r'), std::string::npos) << "a live line is for terminals";
    return ended.code == 0 ? ended.out : ended.err;
  }
};

TEST_F(Texts, come_from_files_pipes_and_stdin) {
  std::ofstream(folder_.file("text")) << "some text";
  const std::string from_file = run("$B/troupe tokenize $M " + folder_.file("text")).out;
  EXPECT_THAT(from_file, HasSubstr("\t\""));
  EXPECT_EQ(run("printf 'some text' | $B/troupe tokenize $M -").out, from_file);
  EXPECT_EQ(run("printf 'some text' | $B/troupe tokenize $M /dev/stdin").out, from_file);
}

TEST_F(Texts, that_cannot_be_read_are_refused_with_the_systems_reason) {
  expect_refused("$B/troupe tokenize $M /no/such", "/no/such: cannot open: No such file or directory");
  expect_refused("$B/troupe tokenize $M /tmp", "/tmp: a folder; a file with text is needed");
  expect_refused("$B/troupe tokenize $M - < /tmp", "stdin: a folder");
  expect_refused("$B/troupe tokenize $M - <&-", "stdin: ");
}

TEST_F(Texts, of_more_than_a_gibibyte_are_refused) {
  const std::string file = folder_.file("long");
  expect_refused("truncate -s 1025M " + file + " && $B/troupe tokenize $M " + file, file + ": more than 1 GiB");
  expect_refused("$B/troupe tokenize $M - < " + file, "stdin: more than 1 GiB");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  expect_refused("$B/troupe tokenize $M /dev/zero", "/dev/zero: more than 1 GiB");
#endif
}

TEST_F(Texts, of_requests_name_the_bad_line_and_what_is_wrong_with_it) {
  const std::pair<const char*, const char*> bad[] = {{"nonsense", "parse error"},
                                                     {"[1]", "no object"},
                                                     {"{\"txt\":1}", "\"text\" is missing"},
                                                     {"{\"text\":1}", "\"text\" is not a string"},
                                                     {"{\"text\":\"a\",\"parse_special\":1}", "neither true nor false"},
                                                     {"", "it is empty"}};
  for (const auto& [line, cause] : bad) {
    std::ofstream(folder_.file("lines")) << "{\"text\":\"a\"}\n" << line << '\n';
    const Ended ended = run("$B/troupe tokenize $M --jsonl < " + folder_.file("lines"));
    EXPECT_EQ(ended.code, 1) << line;
    EXPECT_THAT(ended.out, StartsWith("{\"ids\":[")) << "the good line before it is answered";
    EXPECT_THAT(ended.err, AllOf(HasSubstr("line 2 is not"), HasSubstr(cause)));
  }
}

TEST_F(Texts, of_requests_that_cannot_be_read_are_no_end_of_input) {
  expect_refused("$B/troupe tokenize $M --jsonl < /tmp", "cannot read line 1");
  EXPECT_EQ(run("$B/troupe tokenize $M file --jsonl").code, 2) << "the file would not be read";
  EXPECT_EQ(run("$B/troupe tokenize $M --parse-special --jsonl").code, 2);
}

TEST_F(Texts, of_windows_have_the_perplexity_of_their_plain_lines) {
  const std::string plain = perplexity_of("some words\nthat stand\nhere for a test");
  EXPECT_THAT(plain, StartsWith("perplexity "));
  EXPECT_EQ(perplexity_of("some words\r\nthat stand\r\nhere for a test"), plain);
  EXPECT_NE(perplexity_of("some words\rthat stand\rhere for a test"), plain) << "a lone one is text";
  EXPECT_EQ(run("echo some words | $B/troupe perplexity $M - --window 1").code, 2);
  EXPECT_EQ(run("echo some words | $B/troupe perplexity $M - --window 0").code, 0);
}

}  // namespace
}  // namespace troupe::test
