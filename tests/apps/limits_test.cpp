// A system that refuses memory or threads: whatever the limit, the program ends with a sentence.
#include <gmock/gmock.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

TEST_F(Program, ends_with_a_sentence_whatever_memory_the_system_refuses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes terabytes of addresses";
#endif
  int failed = 0, done = 0;
  for (int megabytes = 24; megabytes <= 400; megabytes += 8) {
    const Ended ended = run("ulimit -v " + std::to_string(megabytes * 1024) +
                            "; timeout 60 $B/troupe complete $M -p x -n 3 --kv-memory 8 --threads 4 --context 64");
    ASSERT_THAT(ended.code, testing::AnyOf(0, 1)) << megabytes << " MB: " << ended.err;
    if (ended.code == 0) {
      ++done;
    } else {
      ++failed;
      EXPECT_THAT(ended.err, testing::HasSubstr("troupe: ")) << megabytes << " MB";
      EXPECT_THAT(ended.err, testing::Not(testing::HasSubstr("fault of its own"))) << megabytes << " MB";
    }
  }
  EXPECT_GT(failed, 3);
  EXPECT_GT(done, 3);
}

}  // namespace
}  // namespace troupe::test
