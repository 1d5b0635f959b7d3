// What `troupe bench` leaves behind when it cannot go on: everything that was measured, and why no more.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Bench : public Program {
 protected:
  Ended bench(const std::string& words) {
    return run("$B/troupe bench $M --prompt 4 --generate 4 --threads 1 --no-table " + words);
  }
};

TEST_F(Bench, refuses_every_wrong_count_before_the_first_run) {
  for (const char* counts : {"1,0", "1,-1", "1,5000", "1,99999999999999999999", "1,x", "''"}) {
    const Ended ended = bench("--sessions " + std::string(counts));
    EXPECT_EQ(ended.code, 2) << counts << ": " << ended.out;
    EXPECT_EQ(ended.out, "") << counts;
  }
}

TEST_F(Bench, refuses_more_sessions_than_the_pages_hold_before_the_first_run) {
  const Ended ended = bench("--sessions 1,4096 --kv-memory 1 --json");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("4096 sessions need 4096 pages of KV memory; there are "));
  const auto report = nlohmann::json::parse(ended.out);
  EXPECT_FALSE(report.contains("runs")) << ended.out;
  EXPECT_THAT(report["error"], HasSubstr("4096 sessions need"));
}

TEST_F(Bench, reports_as_json_that_a_model_cannot_be_opened) {
  const Ended ended = run("$B/troupe bench /no/such.gguf --json");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(nlohmann::json::parse(ended.out)["error"], HasSubstr("/no/such.gguf: cannot open"));
}

TEST_F(Bench, keeps_its_runs_when_the_bandwidth_cannot_be_measured) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more address space than this test grants";
#endif
  const Ended ended =
      run("ulimit -v 1000000; $B/troupe bench $M --prompt 4 --generate 4 --threads 1 --no-table "
          "--kv-memory 16 --sessions 1,2 --json");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("leave it out with --no-bandwidth"));
  const auto report = nlohmann::json::parse(ended.out);
  EXPECT_EQ(report["runs"].size(), 2u);
  EXPECT_TRUE(report.contains("peak_megabytes"));
  EXPECT_THAT(report["error"], HasSubstr("no memory for the gigabyte"));
}

// Stopped in its second, long run: the first one's row is there.
TEST_F(Bench, writes_each_row_as_it_is_measured) {
  const Ended ended =
      run("$B/troupe bench $M --prompt 4 --generate 1000 --threads 1 --kv-memory 200 --sessions 1,64 > " +
          folder_.file("table") + " & until grep -q '^ *1 ' " + folder_.file("table") +
          " || ! kill -0 $!; do sleep 0.05; done; "
          "kill -9 $! && echo stopped");
  EXPECT_EQ(ended.out, "stopped\n") << "the row came with the end only";
}

TEST_F(Bench, refuses_arrivals_that_are_no_rate) {
  for (const char* arrivals :
       {"poisson", "poisson:", "poisson:0", "poisson:-1", "poisson:nan", "poisson:x", "3", "''"}) {
    const Ended ended = bench("--sessions 1 --arrivals " + std::string(arrivals));
    EXPECT_EQ(ended.code, 2) << arrivals << ": " << ended.out;
    EXPECT_EQ(ended.out, "") << arrivals;
  }
}

TEST_F(Bench, refuses_a_shared_prefix_that_is_the_whole_prompt) {
  const Ended ended = bench("--sessions 1 --prefix-share 4");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("--prefix-share 4 leaves no token of a --prompt of 4"));
}

TEST_F(Bench, refuses_an_intruder_that_the_context_does_not_hold_before_the_first_run) {
  const Ended ended = bench("--sessions 1 --context 256 --long-prompt-intruder 256");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("258 tokens a session; the context holds 256"));
  EXPECT_EQ(ended.out, "");
}

TEST_F(Bench, finds_a_shared_prefix_and_gives_the_same_tokens_as_the_plain_loop) {
  const Ended ended =
      run("$B/troupe bench $M --prompt 70 --generate 8 --threads 1 --no-table --no-bandwidth --sessions 5 "
          "--prefix-share 64 "
          "--arrivals poisson:200 --seed 5 --json");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto report = nlohmann::json::parse(ended.out);
  EXPECT_EQ(report["prefix_share"], 64);
  EXPECT_EQ(report["arrivals_per_second"], 200.0);
  EXPECT_EQ(report["seed"], 5);
  const auto& one = report["runs"][0];
  EXPECT_EQ(one["prompt_tokens_found"], 4 * 64) << "the first computes them";
  EXPECT_GT(one["first_token_ms_p99"], 0.0);
  EXPECT_GT(one["tokens_per_second"], 0.0);
}

TEST_F(Bench, tells_what_a_draft_model_brings_and_refuses_one_before_the_first_run) {
  const Ended ended = bench("--sessions 1,2 --no-bandwidth --draft $M --json");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto report = nlohmann::json::parse(ended.out);
  ASSERT_EQ(report["guess_table"].size(), 2u);
  EXPECT_GT(report["guess_table"][0]["drafting_share"], 0.0) << "it was tried";
  const Ended refused = bench("--sessions 1 --draft /no/such.gguf --json");
  EXPECT_EQ(refused.code, 1);
  EXPECT_FALSE(nlohmann::json::parse(refused.out).contains("runs"));
  EXPECT_THAT(refused.err, HasSubstr("/no/such.gguf"));
}

TEST_F(Bench, measures_others_beside_a_long_prompt) {
  const Ended ended = run(
      "$B/troupe bench $M --prompt 8 --generate 8 --threads 1 --no-table --no-bandwidth --sessions 1,3 --context 2000 "
      "--long-prompt-intruder 1500 --json");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto report = nlohmann::json::parse(ended.out);
  ASSERT_EQ(report["intruder"].size(), 2u);
  for (const auto& row : report["intruder"]) {
    EXPECT_EQ(row["prompt"], 1500);
    EXPECT_GE(row["gaps"], row["sessions"]);
    EXPECT_GT(row["gap_ms_p99"], 0.0);
    EXPECT_GT(row["rate_to_alone"], 0.0);
  }
  EXPECT_THAT(ended.err, HasSubstr("beside a prompt of 1500 tokens"));
}

TEST_F(Bench, refuses_every_wrong_count_of_troublemakers) {
  for (const char* option : {"--cancel-storm", "--stalled-readers"}) {
    for (const char* count : {"-1", "4097", "x", "1.5", "''"}) {
      const Ended ended = bench("--sessions 1 " + std::string(option) + " " + count);
      EXPECT_EQ(ended.code, 2) << option << ' ' << count << ": " << ended.out;
      EXPECT_EQ(ended.out, "") << option << ' ' << count;
    }
  }
}

TEST_F(Bench, counts_troublemakers_pages_and_context_before_the_first_run) {
  for (const char* option : {"--cancel-storm", "--stalled-readers"}) {
    const Ended many = bench("--sessions 1 --kv-memory 1 " + std::string(option) + " 4000");
    EXPECT_EQ(many.code, 1) << option;
    EXPECT_THAT(many.err, HasSubstr("1 sessions and those beside them need 16001 pages of KV memory; there are "));
    EXPECT_EQ(many.out, "") << option;
    const Ended tight = bench("--sessions 1 --context 63 " + std::string(option) + " 1");
    EXPECT_EQ(tight.code, 1) << option;
    EXPECT_THAT(tight.err, HasSubstr("64 tokens a session; the context holds 63"));
    EXPECT_EQ(tight.out, "") << option;
  }
}

class BenchBeside : public Bench {
 protected:
  static constexpr const char* kColumns[] = {
      "tokens_per_second_usual", "tokens_per_second", "ratio",      "ratio_lowest", "ratio_highest",
      "gap_ms_usual_p50",        "gap_ms_usual_p99",  "gap_ms_p50", "gap_ms_p99"};

  // The rows of a table; the bench itself has compared every answer with the plain loop's.
  nlohmann::json rows(const std::string& option, const std::string& table, const std::string& title) {
    const Ended ended =
        run("$B/troupe bench $M --prompt 8 --generate 40 --threads 1 --no-table --no-bandwidth --sessions 1,3 --json " +
            option);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(title));
    nlohmann::json found = nlohmann::json::parse(ended.out)[table];
    EXPECT_EQ(found.size(), 2u) << ended.out;
    for (const auto& row : found) {
      for (const char* column : kColumns) EXPECT_GT(row[column], 0.0) << column;
      EXPECT_LE(row["ratio_lowest"], row["ratio"]);
      EXPECT_LE(row["ratio"], row["ratio_highest"]);
    }
    return found;
  }
};

TEST_F(BenchBeside, measures_others_beside_a_storm_of_cancels) {
  const auto found = rows("--cancel-storm 5", "cancel_storm", "beside 5 sessions whose turns are cancelled");
  for (const auto& row : found) {
    EXPECT_EQ(row["beside"], 5);
    EXPECT_GE(row["cancels"], 3 * 5) << "each is cancelled in each of the runs before the load comes";
    EXPECT_GT(row["cancels_a_second"], 0.0);
    EXPECT_GE(row["turns_a_second"], row["cancels_a_second"]);
    EXPECT_GT(row["turns_a_second_usual"], 0.0);
  }
}

TEST_F(BenchBeside, measures_others_beside_readers_that_stand_still_and_sees_that_they_do) {
  const auto found = rows("--stalled-readers 5", "stalled_readers", "beside 5 sessions whose readers stand still");
  for (const auto& row : found) {
    EXPECT_EQ(row["beside"], 5);
    EXPECT_EQ(row["parked"], 5);
    EXPECT_FALSE(row.contains("cancels"));
  }
}

TEST_F(Bench, reports_a_model_whose_name_is_not_utf8) {
  GgufImage image = tiny_model_image(tiny_model(DType::q8_0));
  image.set("general.name", std::string("\xff\xfe"));
  write_file(model_, image.bytes());
  const Ended ended = bench("--sessions 1 --no-bandwidth --json");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["model"], "\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace troupe::test
