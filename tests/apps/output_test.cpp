// Results that do not arrive, and texts that must arrive whole.
#include <gmock/gmock.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

using Output = Program;

TEST_F(Output, that_is_not_written_is_a_failure_with_a_reason) {
  for (const std::string command : {"inspect $M", "complete $M -p x -n 4", "--help"}) {
    const Ended full = run("$B/troupe " + command + " > /dev/full");
    EXPECT_EQ(full.code, 1) << command;
    EXPECT_THAT(full.err, HasSubstr("troupe: cannot write the result: No space left on device")) << command;
    const Ended closed = run("$B/troupe " + command + " >&-");
    EXPECT_EQ(closed.code, 1) << command;
    EXPECT_THAT(closed.err, HasSubstr("troupe: cannot write the result: Bad file descriptor")) << command;
  }
}

TEST_F(Output, whose_reader_has_left_ends_quietly_with_1) {
  // The program starts when a write has failed for want of a reader.
  const Ended ended =
      run("{ trap '' PIPE; while printf x; do :; done 2>&-; $B/troupe inspect $M; echo $? >&2; } | true");
  EXPECT_EQ(ended.err, "1\n");
  const Ended streamed = run("{ $B/troupe complete $M -p x -n 400; echo code $? >&2; } | head -c 5");
  EXPECT_THAT(streamed.err, HasSubstr("cancelled\ncode 1\n"));
}

TEST_F(Output, holds_every_byte_of_a_text) {
  const Ended ended = run("printf 'a\\0b' | $B/troupe complete $M --echo -n 1");
  EXPECT_EQ(ended.out.substr(0, 3), std::string("a\0b", 3));
}

TEST_F(Output, is_of_the_prompt_that_was_given_even_an_empty_one) {
  const Ended empty = run("echo not this | $B/troupe complete $M -p '' -n 4");
  EXPECT_THAT(empty.err, HasSubstr("the prompt is empty"));
  EXPECT_EQ(run("$B/troupe complete $M -p x -f /dev/null").code, 2) << "one prompt is enough";
}

}  // namespace
}  // namespace troupe::test
