// The examples under wrong use: a line that says how, and no abort.
#include <gmock/gmock.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Examples : public Program {};

TEST_F(Examples, refuse_numbers_that_are_none) {
  for (const char* words : {"$M 0", "$M x", "$M 3x", "$M -3", "$M 99999999999", "$M 3 0", "$M 3 4 5", "", "--check"}) {
    const Ended ended = run("$B/example_many_sessions " + std::string(words));
    EXPECT_EQ(ended.code, 2) << words << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("use: many_sessions MODEL.gguf [SESSIONS")) << words;
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(Examples, name_the_model_that_cannot_be_opened) {
  for (const char* command :
       {"example_complete /no/such x", "example_chat /no/such x", "example_many_sessions /no/such"}) {
    const Ended ended = run("$B/" + std::string(command));
    EXPECT_EQ(ended.code, 1) << command;
    EXPECT_THAT(ended.err, HasSubstr("/no/such: cannot open")) << command;
  }
}

}  // namespace
}  // namespace troupe::test
