// kernel_bench: that its ceilings count what they did, that the gate judges as it says, and that a short run of the
// program measures every cell it was asked for. No rate is judged here: the test kernel_gate does.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "apps/kernel_bench/cell.h"
#include "apps/kernel_bench/gate.h"
#include "tests/support/scratch_folder.h"

namespace troupe::kernel_bench {
namespace {

TEST(KernelBench, a_ceiling_counts_what_its_instruction_did) {
  int ran = 0;
  for (const Ceiling& ceiling : all_ceilings()) {
    if (!ceiling.supported()) continue;
    const double once = ceiling.burst(1);
    EXPECT_GT(once, 1e4) << ceiling.name;
    EXPECT_EQ(ceiling.burst(3), 3 * once) << ceiling.name;
    ++ran;
  }
  EXPECT_GT(ran, 0);
}

TEST(KernelBench, every_path_has_ceilings_that_run_where_it_runs) {
  for (Isa isa : kIsas) {
    EXPECT_EQ(dot_ceiling(isa).supported(), supported(isa)) << name(isa);
    EXPECT_TRUE(!supported(isa) || fma_ceiling(isa).supported()) << name(isa);
  }
}

TEST(KernelBench, samples_give_the_best_the_median_and_the_quartiles) {
  Samples samples;
  EXPECT_EQ(samples.median(), 0.0);
  for (double rate : {5.0, 1.0, 4.0, 2.0, 3.0}) samples.add(rate);
  EXPECT_EQ(samples.best(), 5.0);
  EXPECT_EQ(samples.median(), 3.0);
  EXPECT_EQ(samples.low(), 2.0);
  EXPECT_EQ(samples.high(), 4.0);
}

TEST(KernelBench, the_gate_fails_warns_and_passes_at_its_limits) {
  EXPECT_EQ(judge(0.449, kCeilingLimits), Verdict::failed);
  EXPECT_EQ(judge(0.45, kCeilingLimits), Verdict::warned);
  EXPECT_EQ(judge(0.649, kCeilingLimits), Verdict::warned);
  EXPECT_EQ(judge(0.65, kCeilingLimits), Verdict::passed);
  EXPECT_EQ(judge(0.99, kAmxLimits), Verdict::failed);
  EXPECT_EQ(judge(1.0, kAmxLimits), Verdict::warned);
  EXPECT_EQ(judge(1.3, kAmxLimits), Verdict::passed);
  EXPECT_EQ(judge(std::numeric_limits<double>::quiet_NaN(), kAmxLimits), Verdict::failed);
}

TEST(KernelBench, a_trial_counts_the_multiply_adds_of_its_shape) {
  const auto backend = trial_backend(Isa::avx2, 1, 8);
  MatmulTrial trial(*backend, DType::q4_0, {64, 96, 2}, 8);
  EXPECT_EQ(trial.multiply_adds(8), 8.0 * 64 * 96);
  EXPECT_GE(trial.weight_bytes(), 64 * 96 * 18 / 32.0);
  for (int i = 0; i < 4; ++i) trial.run(8);
}

TEST(KernelBench, shapes_stay_in_the_cache_or_leave_it) {
  for (DType type : {DType::q4_0, DType::q8_0, DType::f32}) {
    const TrialShape hot = hot_shape(type), memory = memory_shape(type, std::size_t{64} << 20);
    const auto bytes = [&](const TrialShape& shape) {
      return static_cast<double>(shape.outputs * shape.matrices * Tensor{nullptr, type, 1, shape.inputs}.row_bytes());
    };
    EXPECT_LE(bytes(hot), 1 << 20);
    EXPECT_GE(bytes(memory), 64 << 20);
  }
}

int exit_code(const std::string& arguments) {
  const int status = std::system((TROUPE_BIN "/kernel_bench " + arguments + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(KernelBench, the_program_writes_a_cell_for_all_it_was_asked) {
  const ScratchFolder folder;
  const std::string file = folder.file("kernels.json");
  ASSERT_EQ(exit_code("--quick --threads 1 --isa avx2 --formats Q4_0,F16 --rows 1,8 --hot --json " + file), 0);
  const auto report = nlohmann::json::parse(std::ifstream(file));
  ASSERT_EQ(report["cells"].size(), 4u);
  for (const auto& cell : report["cells"]) {
    EXPECT_EQ(cell["path"], "avx2");
    EXPECT_EQ(cell["mode"], "hot");
    EXPECT_GT(cell["gmac_per_second"].get<double>(), 0.0);
    EXPECT_GT(cell["share"].get<double>(), 0.0);
  }
  EXPECT_EQ(report["cells"][2]["format"], "F16");
  EXPECT_EQ(report["cells"][2]["ceiling"], "vfmadd 256");
}

TEST(KernelBench, the_program_tells_wrong_use_from_failure) {
  EXPECT_EQ(exit_code("--formats Q9_9"), 2);
  EXPECT_EQ(exit_code("--rows 0"), 2);
  EXPECT_EQ(exit_code("--help"), 0);
  EXPECT_EQ(exit_code("--quick --hot --isa avx2 --formats Q4_0 --rows 1 --json /no/such/folder/file"), 1);
}

}  // namespace
}  // namespace troupe::kernel_bench
