// Who gets the rows: by weight between keys, interactive first within one, nobody for ever last.
#include <cstdio>

#include "tests/runtime/simulated_house.h"
#include "tests/support/promise.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

constexpr Machine kDevice{"a device", 8e-3, 0.03e-3, 2e-9};
constexpr std::int64_t kRows = 64;

KeyWeights weights_of(std::map<std::string, int> by_key) {
  return *KeyWeights::of(std::move(by_key));
}

void run_launches(SimulatedHouse& house, int launches) {
  for (int i = 0; i < launches; ++i) house.launch();
}

// What `key` got of all rows, to what its weight says.
double to_its_weight(SimulatedHouse& house, const std::string& key, const std::map<std::string, int>& by_key) {
  double rows = 0, weight = 0;
  for (const auto& [name, each] : by_key) {
    rows += static_cast<double>(house.rows_of(name));
    weight += each;
  }
  return static_cast<double>(house.rows_of(key)) / rows / (by_key.at(key) / weight);
}

void expect_by_weight(SimulatedHouse& house, const std::map<std::string, int>& by_key) {
  run_launches(house, 50);
  house.forget_rows();
  run_launches(house, 400);
  for (const auto& [key, weight] : by_key) {
    EXPECT_NEAR(to_its_weight(house, key, by_key), 1.0, 0.1) << key << " of weight " << weight;
  }
}

const std::map<std::string, int> kCases[] = {
    {{"greedy", 1}, {"modest", 1}}, {{"greedy", 1}, {"modest", 4}}, {{"greedy", 3}, {"modest", 1}}};

TEST(Fair, streams_of_two_keys_with_ten_to_one_demand_get_rows_by_weight) {
  for (const auto& by_key : kCases) {
    SimulatedHouse house(kDevice, kRows, weights_of(by_key));
    for (int i = 0; i < 1100; ++i) house.add_stream(i % 11 == 0 ? "modest" : "greedy");
    expect_by_weight(house, by_key);
  }
  promise("N9", "at 10 to 1 demand shares within 10 % of the weights");
}

TEST(Fair, prompts_of_two_keys_with_ten_to_one_demand_get_rows_by_weight) {
  for (const auto& by_key : kCases) {
    SimulatedHouse house(kDevice, kRows, weights_of(by_key));
    for (int i = 0; i < 33; ++i) house.add_prompts(i % 11 == 0 ? "modest" : "greedy", 100 + 7 * i);
    expect_by_weight(house, by_key);
  }
}

TEST(Fair, a_key_of_streams_and_a_key_of_prompts_get_rows_by_weight) {
  for (const auto& by_key : kCases) {
    SimulatedHouse streams_ask_more(kDevice, kRows, weights_of(by_key));
    for (int i = 0; i < 1000; ++i) streams_ask_more.add_stream("greedy");
    for (int i = 0; i < 3; ++i) streams_ask_more.add_prompts("modest", 300);
    expect_by_weight(streams_ask_more, by_key);
    SimulatedHouse prompts_ask_more(kDevice, kRows, weights_of(by_key));
    for (int i = 0; i < 128; ++i) prompts_ask_more.add_stream("modest");
    for (int i = 0; i < 10; ++i) prompts_ask_more.add_prompts("greedy", 300);
    expect_by_weight(prompts_ask_more, by_key);
  }
}

TEST(Fair, shares_follow_the_weights_where_time_and_not_the_rows_of_a_launch_are_short) {
  const std::map<std::string, int> by_key{{"greedy", 1}, {"modest", 4}};
  SimulatedHouse house({"slow", 20e-3, 5e-3, 0.0}, 512, weights_of(by_key));
  for (int i = 0; i < 10; ++i) house.add_prompts("greedy", 3000);
  house.add_prompts("modest", 3000);
  expect_by_weight(house, by_key);
}

TEST(Fair, jains_index_of_equals_is_nearly_one) {
  SimulatedHouse house(kDevice, kRows);
  constexpr int kKeys = 12;
  for (int key = 0; key < kKeys; ++key) {
    for (int i = 0; i <= 20 * key; ++i) house.add_stream(std::to_string(key));
    for (int i = 0; i < 3; ++i) house.add_prompts(std::to_string(key), 200 + 50 * key);
  }
  run_launches(house, 600);
  double sum = 0, squares = 0;
  for (int key = 0; key < kKeys; ++key) {
    const auto rows = static_cast<double>(house.rows_of(std::to_string(key)));
    sum += rows;
    squares += rows * rows;
  }
  EXPECT_GE(sum * sum / (kKeys * squares), 0.95);
  promise("N9", "Jain's index of 12 equals at least 0.95");
}

TEST(Fair, a_key_that_was_away_has_saved_nothing_up) {
  RowShares shares;
  const auto rows = [&shares](std::vector<std::string> keys, int launches) {
    std::vector<int> got(keys.size());
    for (int launch = 0; launch < launches; ++launch) {
      shares.begin();
      for (std::size_t i = 0; i < keys.size(); ++i) shares.offer(keys[i], Lane::decode, i);
      for (int row = 0; row < 10; ++row) {
        ++got[*shares.next()];
        shares.took(1.0, false);
      }
      shares.end();
    }
    return got;
  };
  rows({"a", "b"}, 10);
  rows({"a"}, 1000);
  const auto both = rows({"a", "b"}, 10);
  EXPECT_NEAR(both[0], 50, 1);
  EXPECT_NEAR(both[1], 50, 1);
}

TEST(Fair, keys_that_have_no_claim_are_forgotten) {
  RowShares shares;
  for (int i = 0; i < 1000; ++i) {
    shares.begin();
    shares.offer("key " + std::to_string(i), Lane::decode, 0);
    shares.next();
    shares.took(1.0, true);
    shares.end();
  }
  EXPECT_LE(shares.keys_known(), 1u);
}

TEST(Fair, nobody_starves) {
  const std::uint64_t seeds = small_scale() ? 4 : 20;
  std::printf("%d seeds\n", static_cast<int>(seeds));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    std::map<std::string, int> by_key;
    for (int key = 0; key < 8; ++key) {
      by_key[std::to_string(key)] = static_cast<int>(1 + random.below(5));
    }
    SimulatedHouse house(kDevice, kRows, weights_of(by_key), seed);
    std::vector<std::int64_t> of_key(8);
    std::vector<std::pair<std::size_t, std::size_t>> streams;  // session, key
    for (int i = 0; i < 400; ++i) {
      const auto key = static_cast<std::size_t>(random.below(8));
      streams.emplace_back(house.add_stream(std::to_string(key)), key);
      ++of_key[key];
      if (i % 20 == 0) house.add_prompts(std::to_string(random.below(8)), 500);
    }
    run_launches(house, 300);
    double all = 0;
    for (const auto& [key, weight] : by_key) all += weight;
    for (const auto& [session, key] : streams) {
      // Before it come its key's other streams, a row of a prompt for each eight of them, and a portion.
      const double before = 1.2 * static_cast<double>(of_key[key]) + 16;
      const double rows_a_launch = kRows * by_key[std::to_string(key)] / all;
      const auto bound = static_cast<std::int64_t>(before / rows_a_launch) + 2;
      EXPECT_LE(house.longest_wait(session), bound) << "seed " << seed << ", key " << key;
    }
  }
}

TEST(Fair, interactive_steps_go_before_background_ones_of_their_key) {
  SimulatedHouse house(kDevice, kRows);
  std::int64_t interactive = 0, background = 0;
  for (int i = 0; i < 400; ++i) house.add_stream("key", 100, i % 2 == 1);
  run_launches(house, 500);
  for (std::size_t i = 0; i < 400; ++i) (i % 2 == 1 ? background : interactive) += house.rows_of(i);
  EXPECT_GE(interactive, 16 * background);
  EXPECT_GT(background, 0) << "it is behind, and not for ever";
}

TEST(Fair, background_work_takes_no_rows_from_another_key_and_all_that_are_left) {
  SimulatedHouse house(kDevice, kRows);
  for (int i = 0; i < 128; ++i) house.add_stream("batch", 100, true);
  for (int i = 0; i < 128; ++i) house.add_stream("talk");
  expect_by_weight(house, {{"batch", 1}, {"talk", 1}});
  SimulatedHouse alone(kDevice, kRows);
  alone.add_prompts("batch", 1000, true);
  run_launches(alone, 10);
  EXPECT_EQ(alone.rows_of("batch"), 10 * kRows);
}

// 600 streams and room for 512 rows: a prompt of the same key gets on.
TEST(Fair, a_prompt_gets_on_beside_more_streams_than_a_launch_has_rows) {
  SimulatedHouse house(kDevice, 512);
  for (int i = 0; i < 600; ++i) house.add_stream("key");
  const std::size_t prompt = house.add_prompts("key", 500);
  run_launches(house, 20);
  EXPECT_GE(house.turns(prompt), 1);
}

TEST(Fair, weights_that_cannot_be_are_refused) {
  for (int weight : {0, -1, 1001}) {
    const auto refused = KeyWeights::of({{"good", 1}, {"secret", weight}});
    ASSERT_FALSE(refused) << weight;
    EXPECT_EQ(refused.error().code, ErrorCode::bad_input);
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << "a key may be a password";
  }
}

}  // namespace
}  // namespace troupe::test
