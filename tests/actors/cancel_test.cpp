// A cancel gives pages back before the next launch, whatever the turn was doing.
#include <array>
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <random>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

// What a launch sees when it begins. A launch whose batch was gathered before a cancel may still begin behind it: what
// counts is the one after.
struct LaunchWatch {
  std::shared_ptr<Engine> engine;
  std::atomic<std::int64_t> begun{0}, used{0};
  RunBatch run() {
    return [this](std::span<Slice> batch) {
      used = engine->pages()->used();
      ++begun;
      engine->run(batch);
    };
  }
};

class CancelLab {
 public:
  static constexpr std::int64_t kPages = 128;

  CancelLab() : lab_(options(), lab_options(kPages), long_path()) {
    watch_.engine = lab_.shared_engine();
    neighbour_ = lab_.open();
    // It decodes all the time, and has its pages for the worst case from the beginning.
    caf::anon_send(neighbour_, say_atom_v, token_turn(prompt(1, 16), 1000));
    EXPECT_TRUE(await_launches(3));
    own_ = lab_.engine().pages()->used();
  }

  // Pages that a launch sees beyond the neighbour's, when the victim met this phase; nothing when the neighbour said
  // its last token meanwhile, so that no launch came to look.
  std::optional<std::pair<SessionPhase, std::int64_t>> strike(Turn turn, std::chrono::microseconds after, bool close) {
    const SessionActor victim = lab_.open();
    caf::anon_send(victim, say_atom_v, std::move(turn));
    std::this_thread::sleep_for(after);
    const auto met = close ? lab_.ask<SessionPhase>(victim, close_atom_v) : lab_.ask<SessionPhase>(victim, stop_atom_v);
    const bool seen_after = await_launches(2);
    // Before an answer has a token the cancel takes the prompt back too; behind it the history stays, with its pages.
    const auto kept = close ? 0 : pages_for(std::ssize(lab_.ask<Transcript>(victim, transcript_atom_v)->tokens));
    const std::int64_t seen = watch_.used - own_;
    if (!close) {
      caf::anon_send(victim, close_atom_v);
      while (lab_.describe().sessions > 1) std::this_thread::yield();
    }
    if (!seen_after) return std::nullopt;
    return std::pair{*met, seen - kept};
  }
  bool neighbour_talks() {
    const auto past = lab_.engine().counters().launches;
    for (int i = 0; i < 200 && lab_.engine().counters().launches == past; ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    return lab_.engine().counters().launches > past;
  }

 private:
  SupervisorOptions options() {
    SupervisorOptions made;
    made.prefix_memory = 0;
    made.run = watch_.run();
    return made;
  }
  // By the clock: beside busy neighbours a yield takes milliseconds.
  bool await_launches(std::int64_t count) {
    const std::int64_t until = watch_.begun + count;
    const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (watch_.begun < until && std::chrono::steady_clock::now() < given_up) std::this_thread::yield();
    return watch_.begun >= until;
  }

  LaunchWatch watch_;
  ActorLab lab_;
  SessionActor neighbour_;
  std::int64_t own_ = 0;
};

TEST(Cancel, gives_the_pages_back_before_the_next_launch_in_every_phase) {
  std::map<SessionPhase, int> hits;
  std::mt19937 random(7);
  for (int round = 0; round < (small_scale() ? 4 : 40); ++round) {
    CancelLab lab;
    for (int i = 0; i < 12 && lab.neighbour_talks(); ++i) {
      const bool close = random() % 2 == 0;
      const std::chrono::microseconds after(random() % 3000);
      const int tokens = i % 3 == 0 ? 600 : 5;    // a prompt of many launches, or of one
      const int answer = i % 4 == 1 ? 1700 : 60;  // more pages than there are: it waits
      const auto struck =
          lab.strike(token_turn(prompt(static_cast<int>(random() % 1000), tokens), answer), after, close);
      if (!struck) break;
      const auto [met, left] = *struck;
      ++hits[met];
      EXPECT_LE(left, 0) << "pages of a turn that was cancelled when it was " << name(met);
    }
  }
  for (const auto& [phase, count] : hits) std::cout << name(phase) << ' ' << count << ' ';
  std::cout << '\n';
  for (const SessionPhase phase : {SessionPhase::queued, SessionPhase::prefilling, SessionPhase::decoding})
    EXPECT_TRUE(small_scale() || hits[phase] > 0) << name(phase);
}

}  // namespace
}  // namespace troupe::test
