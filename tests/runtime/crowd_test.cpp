// The crowd test: a sequence's logits and tokens are the same bits alone and among others, whatever the slice of its
// prompt, the order within a launch, the path and the number of threads (docs/numerics.md, L1 and L2).
#include "tests/runtime/crowd.h"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

#include "tests/runtime/decorated_backend.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/emulated_amx.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"

namespace troupe {
namespace {

using test::BackendChoice;
using test::CrowdPlan;
using test::Probe;
using test::Trace;

constexpr int kOthers[] = {1, 2, 7, 31, 63};
constexpr std::int64_t kSlices[] = {1, 3, 16, 64, 512};

struct Subject {
  std::string name;  // "Q4_1 576"
  TinyModel model;
};

// Every format at its smallest width, and those whose rows may be 576 long at that.
std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (int type = 0; type <= static_cast<int>(DType::q6_k); ++type) {
    const auto& about = traits(static_cast<DType>(type));
    const TinyModel narrow = tiny_model(about.type);
    all.push_back({std::string(about.name) + " " + std::to_string(narrow.width), narrow});
    if (about.block < 256) all.push_back({std::string(about.name) + " 576", tiny_model_576(about.type)});
  }
  return all;
}

// 600 tokens: two splits of attention and a part, and every slice size has an odd last one.
Probe probe_of(std::int64_t vocabulary, std::int64_t tokens = test::small_scale() ? 70 : 600) {
  test::Random random(600);
  Probe probe;
  probe.prompt = test::random_tokens(random, tokens, vocabulary);
  probe.decode_steps = test::small_scale() ? 24 : 32;
  probe.sampling.temperature = 0.9f;
  probe.sampling.seed = 11;
  return probe;
}

Trace alone(Engine& engine, const Probe& probe) {
  return run_probe(engine, probe, {0, 512, 1});
}

void expect_same(Engine& engine, const Probe& probe, const Trace& expected, const CrowdPlan& plan,
                 const std::string& what) {
  const Trace crowded = run_probe(engine, probe, plan);
  EXPECT_EQ(difference(expected, crowded), "") << what << ", " << plan.others << " others, slices of " << plan.slice;
  EXPECT_GE(crowded.shared * 10, crowded.launches * 9) << what;
  std::printf("  %-28s %2d others, slices of %3d: %s\n", what.c_str(), plan.others, static_cast<int>(plan.slice),
              crowded.describe().c_str());
}

std::string on(const std::string& subject, const BackendChoice& choice) {
  return subject + " " + choice.isa + "/" + std::to_string(choice.threads);
}

TEST(Crowd, a_probe_is_the_same_alone_and_in_every_crowd_with_every_slice) {
  ScratchFolder folder;
  for (const TinyModel& model : {tiny_model(DType::q4_0), tiny_model_576(DType::q4_1)}) {
    const std::string path = write_tiny_model(model, folder.file("model.gguf"));
    const BackendChoice choice{"auto", 2};
    const auto engine = test::open_engine(path, test::tiny_options(choice));
    const Probe probe = probe_of(engine->shape().vocabulary, test::small_scale() ? 300 : 600);
    const Trace expected = alone(*engine, probe);
    std::uint64_t seed = 1;
    for (int others : kOthers) {
      for (std::int64_t slice : kSlices) {
        if (test::small_scale() && (slice % 32 != 0 || others == 1 || others == 31)) continue;
        expect_same(*engine, probe, expected, {others, slice, seed++}, on(std::to_string(model.width), choice));
      }
    }
    EXPECT_EQ(engine->pages()->used(), 0);
  }
}

// The reference is a scalar loop: of the wide models it computes a shorter probe.
void expect_the_reference(Engine& engine, const std::string& path, const Subject& subject, Probe probe) {
  if (test::small_scale() && subject.model.width > 256) return;  // minutes of a sanitizer's time
  if (subject.model.width > 256) probe.prompt.resize(270), probe.decode_steps = 2;
  const auto reference = test::open_engine(path, test::tiny_options({"reference", 1}));
  const Trace expected = alone(*reference, probe);
  EXPECT_EQ(difference(expected, alone(engine, probe)), "") << subject.name << " against the reference";
  expect_same(*reference, probe, expected, {3, 16, 5}, on(subject.name, {"reference", 1}));
}

// The combinations take turns over all formats, widths, paths and thread counts.
TEST(Crowd, every_format_is_the_same_on_every_path_with_any_number_of_threads) {
  ScratchFolder folder;
  std::size_t turn = 0;
  for (const Subject& subject : subjects()) {
    const std::string path = write_tiny_model(subject.model, folder.file("model.gguf"));
    const auto best = test::open_engine(path, test::tiny_options({"auto", 1}));
    const Probe probe = probe_of(subject.model.vocab);
    const Trace expected = alone(*best, probe);
    expect_the_reference(*best, path, subject, probe);
    for (const std::string& isa : test::supported_paths()) {
      for (int threads : {1, 2, 3}) {
        const CrowdPlan plan{kOthers[turn % 5], kSlices[2 + turn / 5 % 3], turn};
        ++turn;
        if (test::small_scale() && turn % 9 != 0) continue;
        const auto engine = test::open_engine(path, test::tiny_options({isa, threads}));
        const std::string what = on(subject.name, {isa, threads});
        EXPECT_EQ(difference(expected, alone(*engine, probe)), "") << what;
        expect_same(*engine, probe, expected, plan, what);
      }
    }
  }
}

EngineOptions int8_options(const BackendChoice& choice) {
  EngineOptions options = test::tiny_options(choice);
  options.kv_type = KvType::i8;
  return options;
}

TEST(Crowd, int8_keys_and_values_are_the_same_in_every_crowd_on_every_path_and_on_the_reference) {
  ScratchFolder folder;
  const std::string path = write_tiny_model(tiny_model(DType::q4_0), folder.file("model.gguf"));
  const auto best = test::open_engine(path, int8_options({"auto", 1}));
  const Probe probe = probe_of(best->shape().vocabulary, test::small_scale() ? 270 : 600);
  const Trace expected = alone(*best, probe);
  std::vector<std::string> paths = test::supported_paths();
  paths.emplace_back("reference");
  std::size_t turn = 0;
  for (const std::string& isa : paths) {
    const bool slow = isa == "reference";
    const auto engine = test::open_engine(path, int8_options({isa, slow ? 1 : 3}));
    for (int others : kOthers) {
      if (slow && others > 2) continue;
      const CrowdPlan plan{others, kSlices[1 + turn++ % 4], turn};
      expect_same(*engine, probe, expected, plan, on("i8", {isa, slow ? 1 : 3}));
    }
    EXPECT_EQ(difference(expected, alone(*engine, probe)), "") << isa;
  }
  EngineOptions half = test::tiny_options({"auto", 1});
  half.kv_type = KvType::f16;
  EXPECT_NE(difference(expected, alone(*test::open_engine(path, half), probe)), "") << "int8 was not used";
}

// Threads that want the same processors: the pool's are preempted in the middle of their claims, again and again.
class NoisyNeighbours {
 public:
  explicit NoisyNeighbours(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this](std::stop_token stop) {
        while (!stop.stop_requested()) ++turns_;
      });
    }
  }
  std::uint64_t turns() const { return turns_; }

 private:
  std::atomic<std::uint64_t> turns_{0};
  std::vector<std::jthread> threads_;  // last: they end before what they count in
};

TEST(Crowd, threads_that_are_preempted_change_nothing) {
  ScratchFolder folder;
  const std::string path = write_tiny_model(tiny_model_576(DType::q4_0), folder.file("model.gguf"));
  const Probe probe = probe_of(tiny_model_576(DType::q4_0).vocab);
  const Trace expected = alone(*test::open_engine(path, test::tiny_options({"auto", 1})), probe);
  const NoisyNeighbours noise(usable_cpus() + 1);
  for (const std::string& isa : test::supported_paths()) {
    for (int threads : {2, 3}) {
      if (test::small_scale() && threads == 2) continue;
      const auto engine = test::open_engine(path, test::tiny_options({isa, threads}));
      expect_same(*engine, probe, expected, {7, 64, 3}, on("noise", {isa, threads}));
    }
  }
  EXPECT_GT(noise.turns(), 0u);
}

// Launches of many rows and of few take different kernels there. Emulated tiles are slow, so of four formats only.
TEST(Crowd, the_amx_path_over_emulated_tiles_is_the_same) {
  if (!supported(Isa::avx512_vnni)) GTEST_SKIP() << "needs AVX-512 VNNI";
  ScratchFolder folder;
  for (DType type : {DType::q4_0, DType::q5_1, DType::q8_0, DType::q4_k}) {
    const std::string path = write_tiny_model(tiny_model(type), folder.file("model.gguf"));
    const std::string name(traits(type).name);
    const auto vnni = test::open_engine(path, test::tiny_options({"vnni", 1}));
    const Probe probe = probe_of(vnni->shape().vocabulary);
    const Trace expected = alone(*vnni, probe);
    const auto amx = test::open_on(test::make_emulated_amx_backend(test::WideFrom::as_on_hardware, 2), path,
                                   test::tiny_options({"", 2}));
    EXPECT_EQ(difference(expected, alone(*amx, probe)), "") << name;
    expect_same(*amx, probe, expected, {31, 16, 1}, name + " emulated amx/2");
  }
}

TEST(Crowd, a_kernel_that_depends_on_the_batch_is_found) {
  ScratchFolder folder;
  const std::string path = write_tiny_model(tiny_model(DType::q4_1), folder.file("model.gguf"));
  auto backend = make_backend("auto", 1);
  ASSERT_TRUE(backend.ok());
  const auto engine = test::open_on(std::make_unique<test::BatchDependentBackend>(std::move(*backend)), path,
                                    test::tiny_options({"auto", 1}));
  const Probe probe = probe_of(engine->shape().vocabulary);
  const Trace one_by_one = run_probe(*engine, probe, {0, 1, 1});
  EXPECT_EQ(difference(one_by_one, run_probe(*engine, probe, {0, 1, 1})), "") << "alone it is as good as any";
  for (int others : kOthers) EXPECT_NE(difference(one_by_one, run_probe(*engine, probe, {others, 1, 2})), "") << others;
  EXPECT_NE(difference(one_by_one, run_probe(*engine, probe, {0, 16, 1})), "") << "and it depends on the slice";
}

// The committed bits. Any processor that passes proves that it computes what the machine that wrote them did.
// When docs/numerics.md changes on purpose, the test prints the file's new lines.
TEST(Crowd, golden_logits_have_the_committed_bits) {
  std::map<std::string, std::string> golden;
  std::ifstream file(TROUPE_TEST_DATA "/golden_logits.txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) golden[line.substr(0, line.find(':'))] = line.substr(line.find(':') + 2);
  }
  ScratchFolder folder;
  for (const Subject& subject : subjects()) {
    const std::string path = write_tiny_model(subject.model, folder.file("model.gguf"));
    const auto engine = test::open_engine(path, test::tiny_options({"auto", 2}));
    Probe probe = probe_of(subject.model.vocab, 300);
    probe.decode_steps = 8;
    std::ostringstream bits;
    bits << std::hex << hash(alone(*engine, probe));
    EXPECT_EQ(golden[subject.name], bits.str()) << "golden_logits.txt: " << subject.name << ": " << bits.str();
  }
  EXPECT_EQ(golden.size(), subjects().size()) << "a format without a committed hash, or a hash without a format";
}

}  // namespace
}  // namespace troupe
