// Lives of a whole house from seeds (simulation.h). A seed that breaks a promise is printed with the end of its log and
// the command that lives it again.
//     TROUPE_SIMULATION_SEED=n    that seed alone, with its whole log
//     TROUPE_SIMULATION_SEEDS=n   so many seeds instead of 2,000 (200 at the small scale)
#include "tests/simulation/simulation.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include "tests/support/promise.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

std::optional<std::uint64_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

class SimulationTest : public testing::Test {
 protected:
  // Batchers die by the thousand here: nobody needs to read of it.
  static void SetUpTestSuite() {
    if (!spdlog::get("troupe")) spdlog::create<spdlog::sinks::null_sink_mt>("troupe");
  }

  Life live(std::uint64_t seed, bool keeps_log = false) {
    Life life = Simulation(seed, engines_, keeps_log).run();
    if (!life.broken.empty()) engines_.forget();
    return life;
  }

  // The end of the log is what counts; the whole of it comes with the command.
  void expect_sound(std::uint64_t seed, std::size_t lines = 60) {
    const Life life = live(seed);
    if (life.broken.empty()) return;
    const Life again = live(seed, true);
    std::string log;
    for (std::size_t i = again.log.size() - std::min(lines, again.log.size()); i < again.log.size(); ++i) {
      log += "  " + again.log[i] + "\n";
    }
    ADD_FAILURE() << "seed " << seed << ": " << life.broken << "\n"
                  << log << "live it again: TROUPE_SIMULATION_SEED=" << seed
                  << " build/release/bin/troupe_test_simulation --gtest_filter='SimulationTest.*promises*'";
  }

  Engines engines_;
};

TEST_F(SimulationTest, a_house_keeps_its_promises_whatever_happens_and_in_whatever_order) {
  if (const auto seed = number_from("TROUPE_SIMULATION_SEED")) return expect_sound(*seed, 1'000'000);
  const std::uint64_t seeds = number_from("TROUPE_SIMULATION_SEEDS").value_or(small_scale() ? 200 : 2000);
  std::int64_t events = 0, launches = 0, turns = 0, guesses = 0, right = 0;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    const Life life = live(seed);
    if (!life.broken.empty()) expect_sound(seed);
    events += life.events, launches += life.launches, turns += life.turns;
    guesses += life.guesses, right += life.right_guesses;
  }
  std::cout << "  " << seeds << " seeds: " << events << " events, " << launches << " launches, " << turns << " turns, "
            << right << " of " << guesses << " guesses right\n";
  EXPECT_GT(right, 0);
  EXPECT_LT(right, guesses);
  promise("N14", "lives from " + with_commas(std::min<std::int64_t>(static_cast<std::int64_t>(seeds), 2000)) +
                     " seeds at least");
}

TEST_F(SimulationTest, a_seed_lives_the_same_life_again) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Life first = live(seed, true), second = live(seed, true);
    EXPECT_EQ(first.log, second.log) << "seed " << seed;
    EXPECT_GT(first.launches, 0);
  }
}

}  // namespace
}  // namespace troupe::test
