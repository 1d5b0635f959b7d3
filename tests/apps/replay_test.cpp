// --record and troupe replay, as a user runs them.
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class Replays : public Program {
 protected:
  // `what` is the command with its options but for --record.
  Ended record(const std::string& what) { return run("$B/troupe " + what + " --record " + file_); }
  Ended replay(const std::string& options = "") { return run("$B/troupe replay " + file_ + " " + options); }

  std::string file_ = folder_.file("one.record");
};

TEST_F(Replays, what_a_text_went_on_with_on_any_threads_and_instruction_set) {
  const std::string command = "complete $M -p 'Once upon' --temperature 1 --max-tokens 20 --seed 7";
  const Ended plain = run("$B/troupe " + command), recorded = record(command);
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_EQ(recorded.out, plain.out) << "a record changes no token";
  const Ended again = replay();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, MatchesRegex("launches [0-9]+, equal [0-9]+; answers 20, equal 20; tokens 20\n"));
  for (const char* options : {"--threads 2", "--isa reference", "--kv-memory 1"}) {
    EXPECT_EQ(replay(options).out, again.out) << options;
  }
  const Ended thrice = replay("--times 3");
  EXPECT_EQ(thrice.code, 0);
  EXPECT_EQ(thrice.out, again.out + again.out + again.out);
}

TEST_F(Replays, a_chat_and_a_bench) {
  ASSERT_EQ(run("printf 'hi\\nand more\\n' | $B/troupe run $M --max-tokens 8 --record " + file_).code, 0);
  EXPECT_EQ(replay().code, 0);
  std::filesystem::remove(file_);
  const Ended bench =
      record("bench $M --sessions 1,3 --prompt 8 --generate 12 --json --kv-memory 16 --no-bandwidth --threads 1");
  ASSERT_EQ(bench.code, 0) << bench.err;
  const Ended again = replay();
  EXPECT_EQ(again.code, 0) << again.err << again.out;
  EXPECT_THAT(again.out, HasSubstr("answers 144, equal 144"));  // 1 + 3 sessions, and both, fused and not, in a table
}

TEST_F(Replays, a_record_that_was_cut_as_far_as_it_goes) {
  ASSERT_EQ(record("complete $M -p 'Once upon' --max-tokens 20").code, 0);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 20);
  const Ended cut = replay();
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("ends in the middle"));
}

TEST_F(Replays, no_record_that_is_damaged_or_of_another_model) {
  ASSERT_EQ(record("complete $M -p 'Once upon' --max-tokens 20").code, 0);
  const std::string other = write_tiny_model(tiny_model(DType::q4_0), folder_.file("other.gguf"));
  const Ended strange = replay("--model " + other);
  EXPECT_EQ(strange.code, 1);
  EXPECT_THAT(strange.err, HasSubstr("is of the fingerprint"));
  EXPECT_THAT(strange.err, HasSubstr("this model's is"));
  std::fstream bytes(file_, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(600);
  bytes.put('\xff').put('\x7f');
  bytes.close();
  const Ended damaged = replay();
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("the record is damaged at byte"));
  EXPECT_EQ(run("$B/troupe replay /no/such.record").code, 1);
  EXPECT_THAT(run("$B/troupe replay $M").err, HasSubstr("not a record"));
}

TEST_F(Replays, nothing_over_a_file_that_is_there) {
  std::ofstream(file_) << "precious";
  const Ended refused = record("complete $M -p x --max-tokens 2");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("never overwritten"));
  EXPECT_EQ(std::filesystem::file_size(file_), 8u);
}

}  // namespace
}  // namespace troupe::test
