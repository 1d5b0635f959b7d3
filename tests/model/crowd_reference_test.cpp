// The crowd test on the default model: one sequence alone and among others, on every path of this processor.
// TROUPE_MODEL names the model file.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/runtime/crowd.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

using test::CrowdPlan;
using test::Probe;
using test::Trace;

// 600 tokens of prose; the logits of its last token and of all that follow are compared (119 MB otherwise).
Probe prose_probe() {
  const auto about = nlohmann::json::parse(std::ifstream(TROUPE_TEST_DATA "/reference/perplexity.json"));
  Probe probe;
  probe.prompt = about["ids"].get<std::vector<TokenId>>();
  probe.prompt.resize(test::small_scale() ? 20 : 600);
  probe.decode_steps = test::small_scale() ? 8 : 32;
  probe.keep_from = static_cast<std::int64_t>(probe.prompt.size()) - 1;
  probe.sampling.temperature = 0.8f;
  probe.sampling.seed = 3;
  return probe;
}

std::unique_ptr<Engine> open(const std::string& isa, int threads) {
  EngineOptions options = test::tiny_options({isa, threads});
  options.context = 1024;
  options.kv_memory = std::uint64_t{256} << 20;
  return test::open_engine(std::getenv("TROUPE_MODEL"), options);
}

void expect_same(Engine& engine, const Probe& probe, const Trace& alone, const CrowdPlan& plan,
                 const std::string& path) {
  const Trace crowded = run_probe(engine, probe, plan);
  EXPECT_EQ(difference(alone, crowded), "") << path << ", " << plan.others << " others, slices of " << plan.slice;
  EXPECT_GE(crowded.shared * 10, crowded.launches * 9);
  std::printf("  %-10s %2d others, slices of %3d: %s\n", path.c_str(), plan.others, static_cast<int>(plan.slice),
              crowded.describe().c_str());
}

TEST(CrowdOnTheDefaultModel, a_probe_is_the_same_alone_and_in_a_crowd_on_every_path) {
  ASSERT_NE(std::getenv("TROUPE_MODEL"), nullptr) << "set TROUPE_MODEL to the default model's file";
  const Probe probe = prose_probe();
  const Trace alone = run_probe(*open("auto", 1), probe, {0, 512, 1});
  const std::vector<CrowdPlan> plans =
      test::small_scale() ? std::vector<CrowdPlan>{{2, 16, 1}}
                          : std::vector<CrowdPlan>{{1, 512, 1}, {2, 3, 2}, {7, 64, 3}, {31, 16, 4}, {63, 64, 5}};
  const auto best = open("auto", 2);
  for (const CrowdPlan& plan : plans) expect_same(*best, probe, alone, plan, "auto/2");
  for (const std::string& isa : test::supported_paths()) {
    expect_same(*open(isa, 3), probe, alone, {7, test::small_scale() ? 16 : 512, 6}, isa + "/3");
  }
}

}  // namespace
}  // namespace troupe
