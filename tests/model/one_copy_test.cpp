// One copy of the weights serves everyone. TROUPE_MODEL names the default model's file.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

#include "actors/troupe.h"
#include "tests/support/promise.h"
#include "tests/support/resident.h"
#include "tests/support/test_scale.h"

namespace troupe {
namespace {

constexpr int kSessions = 32;

Turn spoken(int which) {
  Turn turn;
  turn.kind = Turn::Kind::text;
  turn.text = "Session " + std::to_string(which);
  if (!test::small_scale()) turn.text += " counts: one, two, three,";
  turn.limits = {.max_tokens = test::small_scale() ? 4 : 40, .ignore_eos = true};
  turn.logprobs = 0;
  return turn;
}

// All at once; they stay open, so that nobody's pages are another's.
std::vector<Session> speak(Host& host, int sessions) {
  std::vector<Session> open;
  for (int i = 0; i < sessions; ++i) open.push_back(std::move(*host.open_session()));
  std::vector<std::jthread> threads;
  for (int i = 0; i < sessions; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(open[static_cast<std::size_t>(i)].take(spoken(i))); });
  }
  return open;
}

std::vector<float> logprobs_of(Result<TurnEnd> end) {
  EXPECT_TRUE(end);
  std::vector<float> all;
  for (const Sampled& sampled : end->logprobs) all.push_back(sampled.logprob);
  return all;
}

TEST(OneCopy, thirty_two_sessions_add_their_keys_and_values_and_no_weights) {
  const char* path = std::getenv("TROUPE_MODEL");
  ASSERT_NE(path, nullptr);
  HostOptions options;
  options.engine.kv_memory = std::uint64_t{256} << 20;
  options.prefix_memory = 0;
  auto host = Host::open(path, options);
  ASSERT_TRUE(host) << host.error().message;
  speak(*host, kSessions);  // what a launch of so many needs is there now
  const std::vector<float> before = logprobs_of(host->generate(spoken(1)));
  const double alone = test::resident_kilobytes();
  const std::vector<Session> open = speak(*host, kSessions);
  const HostInfo info = *host->describe();
  const double pages = static_cast<double>(info.pages_total - info.pages_free), page_kilobytes = 16 * 23'040 / 1024.0;
  const double grown = test::resident_kilobytes() - alone;
  constexpr double kWeights = 96'000;
  std::printf("  32 sessions: %.0f KB more, their %.0f pages are %.0f KB\n", grown, pages, pages * page_kilobytes);
  EXPECT_TRUE(!test::memory_counts() || grown <= pages * page_kilobytes + 0.02 * kWeights);
  EXPECT_EQ(logprobs_of(host->generate(spoken(1))), before) << "the weights are no longer what they were";
  test::promise("C1", "32 sessions add their pages and less than 0.02 of the weights; the same bits before and after");
}

}  // namespace
}  // namespace troupe
