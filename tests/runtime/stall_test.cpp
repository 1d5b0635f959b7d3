// While a long prompt loads: how long those who talk wait for their next token, and how fast the prompt gets on.
#include <cstdio>

#include "tests/runtime/simulated_house.h"
#include "tests/support/promise.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

constexpr std::int64_t kMaxRows = 512;

// Launch, row and attended token in seconds: from a small model on a good machine to a large one on a poor machine.
const Machine kMachines[] = {
    {"two cores, 135M", 2.4e-3, 0.28e-3, 7e-8}, {"two cores, 1B", 15e-3, 1.5e-3, 1.5e-7},
    {"two cores, 8B", 140e-3, 12e-3, 6e-7},     {"plain code", 1e-3, 20e-3, 5e-6},
    {"a device", 8e-3, 0.03e-3, 2e-9},          {"a noisy neighbour", 10e-3, 1e-3, 2e-7, 0.4},
    {"deep attention", 5e-3, 0.3e-3, 6e-7},
};

struct StallFigures {
  double usual = 0, p50 = 0, p99 = 0;  // seconds between the others' tokens, without the prompt and with it
  double rate = 0, solo_rate = 0;      // tokens of the prompt a second
};

double rate_of(SimulatedHouse& house, std::int64_t tokens) {
  const double began = house.seconds();
  const std::size_t prompt = house.add_prompts("intruder", tokens);
  while (house.turns(prompt) == 0) house.launch();
  return static_cast<double>(tokens) / (house.seconds() - began);
}

StallFigures measure_stall(const Machine& machine, int streams, std::int64_t deep, std::int64_t tokens,
                           std::uint64_t seed) {
  StallFigures result;
  SimulatedHouse alone(machine, kMaxRows, {}, seed);
  result.solo_rate = rate_of(alone, tokens);
  SimulatedHouse house(machine, kMaxRows, {}, seed + 1);
  for (int i = 0; i < streams; ++i) house.add_stream("talks", deep + 37 * i);
  for (int i = 0; i < 200; ++i) house.launch();
  result.usual = quantile(house.gaps(), 0.5);
  house.forget_gaps();
  result.rate = rate_of(house, tokens);
  result.p50 = quantile(house.gaps(), 0.5);
  result.p99 = quantile(house.gaps(), 0.99);
  return result;
}

// What one launch takes of the prompt, so many times.
std::int64_t chunks(const Machine& machine, int streams, std::int64_t count) {
  const double step = machine.launch + machine.row * streams;
  const double chunk = (std::max(StepQueue::kStall * step, StepQueue::kDecodeBudget.count()) - step) / machine.row;
  return count * std::clamp<std::int64_t>(std::llround(chunk), 1, kMaxRows - streams);
}

void expect_bounded(const Machine& machine, int streams, std::int64_t deep, std::int64_t count = 100) {
  const std::uint64_t seeds = small_scale() ? 2 : 10;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const StallFigures result = measure_stall(machine, streams, deep, chunks(machine, streams, count), seed);
    EXPECT_LE(result.p99, std::max(5 * result.usual, 0.250)) << machine.name << ", seed " << seed;
    EXPECT_GE(result.rate, 0.6 * result.solo_rate) << machine.name << ", seed " << seed;
    if (seed > 1) continue;
    std::printf(
        "%-18s %2d seeds, %3d streams at %5ld: step %6.1f ms, beside the prompt p50 %6.1f p99 %6.1f ms, rate %3.0f "
        "%%\n",
        machine.name, static_cast<int>(seeds), streams, static_cast<long>(deep), 1e3 * result.usual, 1e3 * result.p50,
        1e3 * result.p99, 100 * result.rate / result.solo_rate);
  }
}

TEST(Stall, is_bounded_while_a_prompt_of_a_hundred_chunks_loads_beside_one_stream) {
  for (const Machine& machine : kMachines) expect_bounded(machine, 1, 100);
}

TEST(Stall, is_bounded_beside_many_streams) {
  for (const Machine& machine : kMachines) expect_bounded(machine, 24, 100);
  promise("N10",
          "beside 24 streams on simulated machines: the 99th percentile within 5 steps or 250 ms, the prompt at 60 % "
          "of its rate alone");
}

TEST(Stall, is_bounded_beside_streams_deep_in_their_context) {
  for (const Machine& machine : kMachines) expect_bounded(machine, 8, 20'000);
}

TEST(Stall, is_bounded_on_a_machine_whose_launches_are_disturbed_now_and_then) {
  for (Machine machine : kMachines) {
    machine.disturbed_in = 150;
    expect_bounded(machine, 4, 1000, 400);
  }
}

}  // namespace
}  // namespace troupe::test
