// What the flags refuse: at once, with a sentence, before a model is looked for.
#include <chrono>
#include <gmock/gmock.h>
#include <set>

#include "tests/apps/program.h"

namespace troupe::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Options : public Program {
 protected:
  // Wrong use is found before the file is: were it the other way round, the code would be 1.
  void expect_wrong_use(const std::string& words, const std::string& sentence) {
    const Ended ended = run("$B/troupe complete /no/such.gguf -p x " + words);
    EXPECT_EQ(ended.code, 2) << words << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(sentence)) << words;
    EXPECT_EQ(ended.out, "");
  }
};

TEST_F(Options, refuse_sampling_parameters_by_the_runtimes_own_check) {
  expect_wrong_use("--temperature -1", "temperature is -1.0");
  expect_wrong_use("--temperature nan", "temperature is nan");
  expect_wrong_use("--top-k -1", "top_k is -1");
  expect_wrong_use("--top-p 0", "above 0 and at most 1");
  expect_wrong_use("--top-p 1.5", "--top-p");
  expect_wrong_use("--min-p 2", "min_p is 2");
  expect_wrong_use("--repetition-penalty 0", "repetition_penalty");
  expect_wrong_use("--frequency-penalty 3", "frequency_penalty");
  expect_wrong_use("--presence-penalty x", "'x' is not a number");
  expect_wrong_use("--max-tokens -1", "max_tokens is -1");
}

TEST_F(Options, refuse_rules_of_sampling_by_the_runtimes_own_check) {
  expect_wrong_use("--typical-p 0", "typical_p is 0.0");
  expect_wrong_use("--xtc-probability 1.5", "xtc_probability is 1.5");
  expect_wrong_use("--xtc-threshold -1", "xtc_threshold is -1.0");
  expect_wrong_use("--dry-multiplier -1", "dry_multiplier is -1.0");
  expect_wrong_use("--dry-base 0.5", "dry_base is 0.5");
  expect_wrong_use("--dry-allowed-length 0", "dry_allowed_length is 0");
  expect_wrong_use("--dry-sequence-breaker ''", "dry_sequence_breaker is 0; it must be 1 to 64 bytes");
  expect_wrong_use("--mirostat 1", "mirostat is 1; it must be 0 (off) or 2");
  expect_wrong_use("--mirostat-tau nan", "mirostat_tau is nan");
  expect_wrong_use("--mirostat-eta -1", "mirostat_eta is -1.0");
  expect_wrong_use("--dynatemp-range -1", "dynatemp_range is -1.0");
  expect_wrong_use("--dynatemp-exponent inf", "dynatemp_exponent is inf");
}

TEST_F(Options, bring_every_rule_of_sampling_to_the_sampler) {
  const auto text = [&](const std::string& words, const std::string& temperature = "1") {
    const Ended ended = run("$B/troupe complete -p 'a b a b a b' --temperature " + temperature +
                            " --top-k 0 --top-p 1 --min-p 0 --max-tokens 80 --seed 3 " + words + " $M");
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  };
  const std::string plain = text("");
  EXPECT_EQ(text("--xtc-probability 0 --dry-multiplier 0 --mirostat 0 --typical-p 1 --dynatemp-range 0"), plain);
  std::set<std::string> texts{plain};
  for (const char* words :
       {"--typical-p 0.3", "--xtc-probability 1 --xtc-threshold 0.02", "--xtc-probability 1 --xtc-threshold 0.003",
        "--dynatemp-range 0.9", "--dynatemp-range 0.9 --dynatemp-exponent 4", "--mirostat 2 --mirostat-tau 1",
        "--mirostat 2 --mirostat-tau 2", "--mirostat 2 --mirostat-tau 2 --mirostat-eta 0.9"}) {
    EXPECT_TRUE(texts.insert(text(words)).second) << words;
  }
  texts.clear();
  const std::string repeats = "--repetition-penalty 0.1 ";  // below 1: the model is made to repeat itself
  for (const char* words :
       {"", "--dry-multiplier 9", "--dry-multiplier 9 --dry-base 9", "--dry-multiplier 9 --dry-allowed-length 1",
        "--dry-multiplier 9 --dry-sequence-breaker fr"}) {
    EXPECT_TRUE(texts.insert(text(repeats + words, "0")).second) << words;
  }
  EXPECT_EQ(text(repeats + "--dry-multiplier 9 --dry-sequence-breaker b", "0"), text(repeats, "0"));
}

TEST_F(Options, refuse_stop_texts_that_are_empty_or_too_many) {
  expect_wrong_use("--stop ''", "a stop string of 0 bytes");
  std::string many;
  for (int i = 0; i < 17; ++i) many += " --stop s" + std::to_string(i);
  expect_wrong_use(many, "17 stop strings");
}

TEST_F(Options, refuse_whole_numbers_that_are_none_or_too_large) {
  for (const char* seed : {"-1", "18446744073709551616", "1.5", "0x10", "''", "' 7'"}) {
    expect_wrong_use("--seed " + std::string(seed), "is not a whole number from 0 to 18446744073709551615");
  }
  expect_wrong_use("--kv-memory 18446744073710", "is not a whole number from 0 to 18446744073709");
  expect_wrong_use("--kv-memory -1", "whole number");
  expect_wrong_use("--threads 1025", "--threads");
  expect_wrong_use("--threads many", "--threads");
  expect_wrong_use("--context -1", "--context");
  expect_wrong_use("--window -1", "--window");
  expect_wrong_use("--sinks x", "--sinks");
}

TEST_F(Options, read_a_seed_in_decimal) {
  const std::string command = "$B/troupe complete $M -p 'Once upon' --temperature 1 --max-tokens 12 --seed ";
  const Ended ten = run(command + "10");
  EXPECT_EQ(ten.code, 0) << ten.err;
  EXPECT_EQ(run(command + "010").out, ten.out);
  EXPECT_EQ(run(command + "18446744073709551615").code, 0);
}

TEST_F(Options, refuse_names_that_are_not_known_and_name_those_that_are) {
  expect_wrong_use("--isa sparc", "avx-vnni");
  expect_wrong_use("--isa ''", "reference");
  expect_wrong_use("--numa on", "interleave");
  expect_wrong_use("--kv-type i4", "i8");
  expect_wrong_use("--chat-template /no/such", "cannot open: No such file or directory");
  for (const char* command : {"complete -p x", "inspect", "tokenize"}) {
    EXPECT_EQ(run("$B/troupe " + std::string(command) + " ''").code, 2) << command;
  }
}

TEST_F(Options, choose_the_type_of_keys_and_values_for_every_command_that_computes) {
  for (const char* type : {"f16", "f32", "i8"}) {
    const std::string flag = " $M --kv-type " + std::string(type);
    const Ended complete = run("$B/troupe complete -p x --max-tokens 2" + flag);
    EXPECT_EQ(complete.code, 0) << complete.err;
    const Ended bench = run("$B/troupe bench --prompt 4 --generate 2 --no-table --no-bandwidth --sessions 2" + flag);
    EXPECT_EQ(bench.code, 0) << bench.err;
    EXPECT_THAT(bench.err, HasSubstr("tokens in " + std::string(type) + ")"));
    const Ended perplexity = run("printf 'a text of some words' | $B/troupe perplexity" + flag + " -");
    EXPECT_EQ(perplexity.code, 0) << perplexity.err;
    EXPECT_EQ(run("printf hi | $B/troupe run --max-tokens 2" + flag).code, 0);
  }
}

TEST_F(Options, leave_the_model_its_place_behind_a_list) {
  const Ended stop = run("$B/troupe complete -p x --max-tokens 2 --stop a --stop b $M");
  EXPECT_EQ(stop.code, 0) << stop.err;
  const Ended sessions = run("$B/troupe bench --prompt 4 --generate 2 --no-table --no-bandwidth --sessions 1,2 $M");
  EXPECT_EQ(sessions.code, 0) << sessions.err;
}

TEST_F(Options, take_more_threads_than_there_are_processors) {
  const Ended ended = run("$B/troupe complete $M -p x --max-tokens 2 --threads 1024");
  EXPECT_TRUE(ended.code == 0 || (ended.code == 1 && ended.err.find("threads") != std::string::npos))
      << ended.code << ": " << ended.err;
}

// A file is another's text: neither its escape sequences nor its megabytes may reach the terminal by way of an error.
TEST_F(Options, show_a_files_text_harmless_and_short) {
  GgufImage image = tiny_model_image(tiny_model(DType::q8_0));
  image.set("general.architecture", "\x1b]0;owned\x07\n" + std::string(1'000'000, 'x'));
  write_file(model_, image.bytes());
  const Ended ended = run("$B/troupe complete $M -p x");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("architecture '\\x1b]0;owned\\x07\\x0axxx"), HasSubstr("supported: llama")));
  EXPECT_LT(ended.err.size(), 1000u);
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1);
}

}  // namespace
}  // namespace troupe::test
