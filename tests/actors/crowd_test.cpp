// The crowd test at the height of the actors: a probe session alone, and among others that come and go.
#include <algorithm>
#include <iostream>
#include <random>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

EngineOptions crowd_options() {
  EngineOptions options = lab_options();
  options.kv_memory = std::uint64_t{64} << 20;
  return options;
}

// How many of the probe's launches it shared with how many others.
struct Watch {
  std::shared_ptr<Engine> engine;
  std::vector<TokenId> probe;  // its prompt's first tokens mark its slices
  std::atomic<int> launches{0}, shared{0};
  std::atomic<const void*> pages{nullptr};
  RunBatch run() {
    return [this](std::span<Slice> batch) {
      for (const Slice& slice : batch) {
        if (slice.position == 0 && slice.tokens.size() > 1 && slice.tokens[0] == probe[0] &&
            slice.tokens[1] == probe[1]) {
          pages = slice.cache->pages()[0];
        }
      }
      const bool there =
          std::any_of(batch.begin(), batch.end(), [&](const Slice& slice) { return slice.cache->pages()[0] == pages; });
      launches += there ? 1 : 0;
      shared += there && batch.size() > 1 ? 1 : 0;
      engine->run(batch);
    };
  }
};

void crowd(int others, int max_rows) {
  SCOPED_TRACE(std::to_string(others) + " others, launches of at most " + std::to_string(max_rows) + " rows");
  Watch watch;
  watch.probe = prompt(1000, 600);
  SupervisorOptions options;
  options.run = watch.run();
  options.linger = std::chrono::seconds(60);
  EngineOptions engine_options = crowd_options();
  engine_options.max_rows = max_rows;
  ActorLab lab(options, engine_options);
  watch.engine = lab.shared_engine();
  std::vector<SessionActor> sessions;
  for (int i = 0; i < others; ++i) sessions.push_back(lab.open());
  const SessionActor probe = lab.open();
  using Pending = decltype(lab.self()->request(probe, std::chrono::seconds(120), say_atom_v, Turn()));
  std::vector<Pending> pending;
  std::mt19937 order(static_cast<unsigned>(others));
  std::vector<int> arrival(static_cast<std::size_t>(others));
  for (int i = 0; i < others; ++i) arrival[static_cast<std::size_t>(i)] = i;
  std::shuffle(arrival.begin(), arrival.end(), order);
  // The neighbours' answers are long enough to be there until the probe has ended.
  for (int i : arrival) {
    pending.push_back(lab.self()->request(sessions[static_cast<std::size_t>(i)], std::chrono::seconds(120), say_atom_v,
                                          token_turn(prompt(i, 3 + i % 40), 900)));
  }
  // The crowd is there before the probe comes: every neighbour decodes.
  while (lab.engine().counters().sampled < static_cast<std::uint64_t>(2 * others)) std::this_thread::yield();
  const Turn turn = token_turn(watch.probe, 40, 11);
  const auto end = lab.say(probe, turn);
  for (const SessionActor& session : sessions) lab.self()->send(session, stop_atom_v);
  for (auto& response : pending)
    response.receive([](TurnEnd&) {}, [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->tokens, lab.solo(turn));
  std::cout << "probe among " << others << ": " << watch.shared << " of " << watch.launches << " launches shared\n";
  EXPECT_GE(10 * watch.shared, others > 0 ? 9 * watch.launches : 0);
  lab.stop();
}

TEST(Crowd, gives_a_session_the_same_tokens_alone_and_among_any_number_of_others) {
  for (int others : {0, 1, 2, 7, 31, 63}) {
    if (small_scale() && others > 7) continue;
    crowd(others, 512);
  }
  promise("C12", "the same bits with 0, 1, 2, 7, 31 and 63 others");
}

TEST(Crowd, gives_the_same_tokens_however_small_the_slices_of_its_prompt_are) {
  for (int max_rows : {80, 97, 128}) crowd(7, max_rows);
}

}  // namespace
}  // namespace troupe::test
