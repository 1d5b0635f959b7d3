// The program and the examples as a user runs them: what they print, where, and how they end.
#include "tests/apps/program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/load/gguf.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

TEST_F(Program, says_what_is_wrong_use_and_ends_with_2) {
  EXPECT_EQ(run("$B/troupe").code, 2);
  const Ended unknown = run("$B/troupe dance");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--help"));
  EXPECT_EQ(run("$B/troupe run").code, 2) << "a model is needed";
  EXPECT_EQ(run("$B/troupe run $M --threads -1").code, 2);
  EXPECT_EQ(run("$B/troupe --help").code, 0);
}

TEST_F(Program, names_the_file_that_it_cannot_use_and_ends_with_1) {
  const Ended missing = run("$B/troupe inspect /no/such.gguf");
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.out.empty());
  EXPECT_THAT(missing.err, HasSubstr("/no/such.gguf"));
  const Ended folder = run("$B/troupe run /tmp < /dev/null");
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.err, HasSubstr("not a regular file"));
  const Ended isa = run("$B/troupe complete $M --isa sparc -p x");
  EXPECT_EQ(isa.code, 2) << "wrong use, and no fault of the machine";
  EXPECT_THAT(isa.err, HasSubstr("avx2"));
}

TEST_F(Program, inspects_a_file) {
  const Ended ended = run("$B/troupe inspect $M");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("general.architecture"));
  EXPECT_THAT(ended.out, HasSubstr("blk.1.ffn_down.weight"));
  EXPECT_THAT(ended.out, HasSubstr("keys, values   256 bytes a token in f16, 512 in f32, 160 in i8"));
  EXPECT_THAT(ended.out, HasSubstr("chat template  tier 1, renders"));
}

TEST_F(Program, chats_with_what_is_piped_in) {
  const Ended ended = run("printf 'hi\\nand more\\n' | $B/troupe run $M --max-tokens 8");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_GE(std::count(ended.out.begin(), ended.out.end(), '\n'), 2);
  EXPECT_EQ(ended.out.find('\033'), std::string::npos) << "no colours into a pipe";
  EXPECT_EQ(run("printf hi | $B/troupe run $M --max-tokens 8").out.empty(), false) << "a last line needs no newline";
}

TEST_F(Program, answers_the_same_with_the_same_seed) {
  const std::string command = "$B/troupe complete $M -p 'Once upon' --temperature 1 --max-tokens 20 --seed ";
  EXPECT_EQ(run(command + "7").out, run(command + "7").out);
  EXPECT_NE(run(command + "7").out, run(command + "8").out);
}

TEST_F(Program, saves_and_loads_a_chat) {
  const std::string file = folder_.file("chat.json");
  const Ended saved = run("printf 'hello\\n/save " + file + "\\n' | $B/troupe run $M --max-tokens 6");
  EXPECT_EQ(saved.code, 0) << saved.err;
  ASSERT_TRUE(std::filesystem::exists(file)) << saved.err;
  const Ended loaded = run("printf '/load " + file + "\\nagain\\n/stats\\n' | $B/troupe run $M --max-tokens 6");
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_THAT(loaded.err, HasSubstr("loaded"));
  std::ofstream(file) << "{\"troupe_chat\": 1, \"messages\": 5}";
  EXPECT_THAT(run("printf '/load " + file + "\\n' | $B/troupe run $M").err, HasSubstr("not a saved chat"));
}

TEST_F(Program, tokenizes_lines_of_json) {
  const Ended ended = run(
      R"(printf '{"text":"hi<|im_end|>","parse_special":true}\n{"text":"hi<|im_end|>"}\n' | $B/troupe tokenize $M --jsonl)");
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::size_t end = ended.out.find('\n');
  const auto parsed = nlohmann::json::parse(ended.out.substr(0, end))["ids"];
  const auto plain = nlohmann::json::parse(ended.out.substr(end + 1))["ids"];
  EXPECT_EQ(parsed.back(), 2);
  EXPECT_EQ(std::find(plain.begin(), plain.end(), 2), plain.end());
  const Ended bad = run(R"(printf '{"text":"a"}\n{"txt":1}\n' | $B/troupe tokenize $M --jsonl)");
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("line 2"));
}

TEST_F(Program, measures_and_reports_as_json) {
  const Ended ended =
      run("$B/troupe bench $M --sessions 1,3 --prompt 8 --generate 12 --json --kv-memory 16 --no-table --no-bandwidth");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto report = nlohmann::json::parse(ended.out);
  ASSERT_EQ(report["runs"].size(), 2u);
  EXPECT_EQ(report["runs"][1]["sessions"], 3);
  EXPECT_GT(report["runs"][1]["tokens_per_second"], 0.0);
  EXPECT_TRUE(report["runs"][1].contains("mean_launch_width"));
}

TEST_F(Program, measures_prompts_longer_than_a_launch) {
  const Ended ended =
      run("$B/troupe bench $M --sessions 2 --prompt 700 --generate 4 --json --kv-memory 16 --no-table --no-bandwidth");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_GT(nlohmann::json::parse(ended.out)["runs"][0]["prefill_tokens_per_second"], 0.0);
}

TEST_F(Program, tells_the_perplexity_of_a_text) {
  const Ended ended = run("printf 'some words that stand here for a test of it' | $B/troupe perplexity $M -");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("perplexity "));
}

TEST_F(Program, runs_every_example) {
  EXPECT_THAT(run("$B/example_complete $M 'The sea'").out, HasSubstr("The sea"));
  EXPECT_THAT(run("$B/example_chat $M one two").out, HasSubstr("from the cache"));
  const Ended many = run("$B/example_many_sessions $M 5 24 --check");
  EXPECT_EQ(many.code, 0) << many.err;
  EXPECT_THAT(many.out, HasSubstr("5 of 5 answers equal"));
}

// What a loaded model that nobody talks to takes: the weights once, and little besides.
TEST_F(Program, rests_in_little_more_memory_than_the_models_tensors) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is counted too";
#endif
  const char* model = std::getenv("TROUPE_MODEL");
  if (model == nullptr) GTEST_SKIP() << "TROUPE_MODEL names no file ('./run test' sets it)";
  const auto file = Gguf::open(model);
  ASSERT_TRUE(file) << file.error().message;
  const Ended ended = run("echo /stats | $B/troupe run $TROUPE_MODEL");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::size_t at = ended.err.rfind("free; ");
  ASSERT_NE(at, std::string::npos) << ended.err;
  const double resident = std::stod(ended.err.substr(at + 6));
  std::cout << "resident " << resident << " MB, tensors " << static_cast<double>(file->tensor_bytes()) / 1e6 << " MB\n";
  EXPECT_GT(resident, 0.9e-6 * static_cast<double>(file->tensor_bytes()));
  EXPECT_LE(resident, 1.05e-6 * static_cast<double>(file->tensor_bytes()) + 40);
}

TEST_F(Program, ends_when_its_reader_is_gone) {
  const Ended ended = run("$B/troupe complete $M -p x --max-tokens 400 | head -c 5 > /dev/null");
  EXPECT_LT(ended.code, 128);
}

}  // namespace
}  // namespace troupe::test
