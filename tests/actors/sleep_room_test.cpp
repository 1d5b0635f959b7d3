// Sessions that sleep in memory or on a disk: the next turn has the same bits, and computes nothing of its past again.
#include <atomic>
#include <filesystem>
#include <latch>

#include "tests/actors/talker.h"

namespace troupe::test {
namespace {

constexpr std::size_t kPageBytes = 4 * 1024;  // of the tiny model, at most

const SleepOptions kPlenty{.memory = 1000 * kPageBytes};

SupervisorOptions nothing_shared() {
  SupervisorOptions options;
  options.prefix_memory = 0;  // what a turn need not compute again was asleep, not found
  return options;
}

// Of a past of so many tokens: all but the last sampled one, which nobody has computed yet.
std::int64_t all_cached(std::int64_t before) {
  return before - 1;
}

// Three talkers of 6 pages in 12: whoever speaks sends another to sleep.
SleepCounters three_keep_talking(ActorLab& lab) {
  std::vector<Talker> talkers;
  for (int i = 0; i < 3; ++i) talkers.push_back({lab.open()});
  for (int i = 0; i < 3; ++i) talkers[static_cast<std::size_t>(i)].turn(lab, i, 70);
  for (int round = 1; round < 4; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto before = std::ssize(talkers[i].history);
      talkers[i].turn(lab, 10 * round + static_cast<int>(i), 3);
      EXPECT_EQ(talkers[i].cached, all_cached(before)) << "round " << round << ", talker " << i;
    }
  }
  const SleepCounters now = lab.describe().sleepers;
  EXPECT_GE(now.woken, 6u);
  EXPECT_EQ(now.lost, 0u);
  return now;
}

TEST(SleepingSession, wakes_from_memory_without_computing_its_past) {
  ActorLab lab(nothing_shared(), lab_options(13), tiny_path(), kPlenty);
  EXPECT_GT(three_keep_talking(lab).in_memory, 0);
}

TEST(SleepingSession, wakes_from_a_disk_without_computing_its_past) {
  const ScratchFolder folder;
  ActorLab lab(nothing_shared(), lab_options(13), tiny_path(), SleepOptions{.memory = 0, .folder = folder.path()});
  EXPECT_GT(three_keep_talking(lab).on_disk, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SleepingSession, one_that_was_lost_computes_its_past_again_to_the_same_bits) {
  ActorLab lab(nothing_shared(), lab_options(13), tiny_path(), SleepOptions{.memory = 7 * kPageBytes});
  std::vector<Talker> talkers;
  for (int i = 0; i < 6; ++i) talkers.push_back({lab.open()});
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < talkers.size(); ++i) {
      talkers[i].turn(lab, 10 * round + static_cast<int>(i), round == 0 ? 70 : 3);
    }
  }
  EXPECT_GT(lab.describe().sleepers.lost, 0u);
}

TEST(SleepingSession, ten_times_more_than_pages_fit_keep_talking_from_memory_and_disk) {
  const ScratchFolder folder;
  ActorLab lab({}, lab_options(40), tiny_path(), SleepOptions{.memory = 60 * kPageBytes, .folder = folder.path()});
  std::vector<Talker> talkers;
  for (int i = 0; i < 60; ++i) talkers.push_back({lab.open()});
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < talkers.size(); ++i) {
      const auto before = std::ssize(talkers[i].history);
      talkers[i].turn(lab, static_cast<int>(100 * round + static_cast<int>(i)), round == 0 ? 90 : 9);
      EXPECT_EQ(talkers[i].cached, round == 0 ? 0 : all_cached(before));
      ASSERT_FALSE(testing::Test::HasFailure()) << "round " << round << ", session " << i;
    }
  }
  promise("N6", "60 sessions of 7 to 9 pages talk on in 40 pages; no token of their past is computed again");
  for (const Talker& talker : talkers) caf::anon_send(talker.session, close_atom_v);
  EXPECT_EQ(lab.free_pages_at_rest(), 40);
  EXPECT_EQ(lab.describe().sleepers.memory_bytes + lab.describe().sleepers.disk_bytes, 0u);
}

TEST(SleepingSession, is_forked_and_saved_in_its_sleep) {
  const ScratchFolder folder;
  ActorLab lab(nothing_shared(), lab_options(13), tiny_path(), kPlenty);
  Talker sleeper{lab.open()}, other{lab.open()};
  sleeper.turn(lab, 1, 70);
  other.turn(lab, 2, 150);  // 10 pages
  ASSERT_EQ(lab.describe().sleepers.in_memory, 1);
  Talker branch = sleeper, loaded = sleeper;
  const auto forked = lab.ask<SessionActor>(lab.host(), fork_atom_v, sleeper.session, std::int64_t{-1});
  ASSERT_TRUE(forked);
  branch.session = *forked;
  ASSERT_TRUE(lab.ask<bool>(lab.host(), save_atom_v, sleeper.session, folder.file("asleep")));
  EXPECT_EQ(lab.describe().sleepers.woken, 0u);
  caf::anon_send(other.session, close_atom_v);
  const auto before = std::ssize(sleeper.history);
  branch.turn(lab, 5, 3);
  EXPECT_EQ(branch.cached, all_cached(before));
  sleeper.turn(lab, 6, 3);
  EXPECT_EQ(sleeper.cached, all_cached(before));
  caf::anon_send(branch.session, close_atom_v);
  const auto opened = lab.ask<SessionActor>(lab.host(), load_atom_v, folder.file("asleep"));
  ASSERT_TRUE(opened) << opened.error().message;
  loaded.session = *opened;
  loaded.turn(lab, 7, 3);
  EXPECT_EQ(loaded.cached, all_cached(before));
}

TEST(SleepingSession, a_turn_that_is_stopped_in_line_leaves_the_sleeper_asleep) {
  std::latch may_end(1);
  std::atomic<bool> closed{false};
  std::shared_ptr<Engine> engine;
  SupervisorOptions options = nothing_shared();
  options.run = [&](std::span<Slice> batch) {
    if (closed) may_end.wait();
    engine->run(batch);
  };
  ActorLab lab(options, lab_options(13), tiny_path(), kPlenty);
  engine = lab.shared_engine();
  Talker sleeper{lab.open()}, other{lab.open()};
  sleeper.turn(lab, 1, 70);
  other.turn(lab, 2, 150);
  ASSERT_EQ(lab.describe().sleepers.in_memory, 1);
  closed = true;  // the other's turn holds all 13 pages until it may end
  auto busy = lab.self()->request(other.session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(3, 3), 45));
  while (lab.engine().pages()->free() > 0) std::this_thread::yield();
  auto in_line =
      lab.self()->request(sleeper.session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(4, 3), 6));
  while (lab.describe().waiting == 0) std::this_thread::yield();
  EXPECT_EQ(*lab.ask<SessionPhase>(sleeper.session, stop_atom_v), SessionPhase::queued);
  in_line.receive([](TurnEnd& end) { EXPECT_EQ(end.reason, FinishReason::cancelled); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  EXPECT_EQ(lab.describe().sleepers.in_memory, 1);
  may_end.count_down();
  busy.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 45u); },
               [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  const auto before = std::ssize(sleeper.history);
  sleeper.turn(lab, 6, 3);
  EXPECT_EQ(sleeper.cached, all_cached(before));
}

}  // namespace
}  // namespace troupe::test
