// The simulation's own exam: a house with a planted fault (runtime/planted_fault.h) breaks a promise within the seeds
// that a sound house lives through.
#include <cstdio>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include "runtime/planted_fault.h"
#include "tests/simulation/simulation.h"
#include "tests/support/promise.h"

namespace troupe::test {
namespace {

constexpr std::uint64_t kSeeds = 2000;

class Planted : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!spdlog::get("troupe")) spdlog::create<spdlog::sinks::null_sink_mt>("troupe");
    planted_fault = static_cast<PlantedFault>(GetParam());
  }
  void TearDown() override { planted_fault = PlantedFault::none; }

  // The first seed of `seeds` that breaks a promise, and which; 0 when none does.
  static std::uint64_t first_broken(std::uint64_t seeds, std::string& promise) {
    Engines engines;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      promise = Simulation(seed, engines, false).run().broken;
      if (!promise.empty()) return seed;
    }
    return 0;
  }
};

TEST_P(Planted, fault_is_found) {
  std::string promise;
  const std::uint64_t seed = first_broken(kSeeds, promise);
  EXPECT_NE(seed, 0u) << "no seed of " << kSeeds << " finds planted fault " << GetParam();
  test::promise("N14", std::to_string(kPlantedFaults - 1) + " planted faults found, each within 2,000 seeds");
  std::printf("  planted fault %d: seed %d: %s\n", GetParam(), static_cast<int>(seed), promise.c_str());
}
INSTANTIATE_TEST_SUITE_P(EachFault, Planted, testing::Range(1, kPlantedFaults));

TEST(PlantedFault, that_is_not_there_is_not_found) {
  ASSERT_EQ(planted_fault, PlantedFault::none);
  spdlog::drop("troupe");
  spdlog::create<spdlog::sinks::null_sink_mt>("troupe");
  Engines engines;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) EXPECT_EQ(Simulation(seed, engines, false).run().broken, "");
}

}  // namespace
}  // namespace troupe::test
