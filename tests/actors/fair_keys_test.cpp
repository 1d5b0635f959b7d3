// Keys and their weights, from the host's options to the rows of its launches.
#include <latch>

#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

TEST(FairKeys, share_the_rows_of_launches_by_the_weights_of_the_host_with_the_bits_of_a_session_alone) {
  constexpr int kSessions = 48, kLaunches = 150;
  constexpr std::uint64_t kHeavySeed = 3, kLightSeed = 1;
  std::latch all_asked(1);
  std::shared_ptr<Engine> engine;
  std::map<std::uint64_t, std::size_t> rows;  // by seed, in the first launches
  int launches = 0;
  SupervisorOptions options;
  options.weights = *KeyWeights::of({{"heavy", 3}});
  options.prefix_memory = 0;
  options.run = [&](std::span<Slice> batch) {
    all_asked.wait();
    if (++launches <= kLaunches) {
      for (const Slice& slice : batch) rows[slice.sampling->seed] += slice.tokens.size();
    }
    engine->run(batch);
  };
  EngineOptions narrow = lab_options();
  narrow.max_rows = 8;
  ActorLab lab(options, narrow);
  engine = lab.shared_engine();
  const Turn heavy = token_turn(prompt(1, 16), 60, kHeavySeed), light = token_turn(prompt(2, 16), 60, kLightSeed);
  using Pending = decltype(lab.self()->request(lab.open(), std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<Pending> pending;
  for (int i = 0; i < kSessions; ++i) {
    OpenSession opening;
    opening.key = i % 2 == 0 ? "heavy" : "light";
    pending.push_back(
        lab.self()->request(lab.open(opening), std::chrono::seconds(60), say_atom_v, i % 2 == 0 ? heavy : light));
  }
  while (lab.engine().pages()->used() < 5 * kSessions) std::this_thread::yield();
  all_asked.count_down();
  const auto of_heavy = lab.solo(heavy), of_light = lab.solo(light);
  for (int i = 0; i < kSessions; ++i) {
    pending[static_cast<std::size_t>(i)].receive(
        [&](TurnEnd& end) { EXPECT_EQ(end.tokens, i % 2 == 0 ? of_heavy : of_light); },
        [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  }
  lab.stop();
  const auto got = static_cast<double>(rows[kHeavySeed]);
  EXPECT_NEAR(got / (got + static_cast<double>(rows[kLightSeed])), 0.75, 0.075);
}

TEST(FairKeys, weights_that_cannot_be_are_refused_when_the_host_opens) {
  HostOptions options;
  options.key_weights = {{"key", 0}};
  const auto refused = Host::open(tiny_path(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace troupe::test
