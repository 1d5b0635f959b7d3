// To own pages is not to pin them: idle sessions make room, and nobody can tell from their answers.
#include <latch>

#include "tests/actors/talker.h"
#include "tests/support/promise.h"

namespace troupe::test {
namespace {

TEST(Sleep, ten_times_more_idle_sessions_than_pages_keep_talking) {
  ActorLab lab({}, lab_options(40));  // each session holds 3 to 8 pages
  std::vector<Talker> talks;
  for (int i = 0; i < 60; ++i) talks.push_back({lab.open(), prompt(i, 0)});
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < talks.size(); ++i) {
      talks[i].turn(lab, static_cast<int>(100 * round + static_cast<int>(i)));
      ASSERT_FALSE(testing::Test::HasFailure()) << "round " << round << ", session " << i;
    }
  }
  EXPECT_EQ(lab.describe().sessions, 60);
  EXPECT_EQ(lab.describe().waiting, 0);
}

TEST(Sleep, the_longest_idle_goes_first_and_what_is_left_of_it_is_found_again) {
  SupervisorOptions options;
  ActorLab lab(options, lab_options(20));
  Talker early{lab.open(), {}}, late{lab.open(), {}};
  ASSERT_TRUE(lab.say(early.session, token_turn(prompt(1, 90), 6)));
  ASSERT_TRUE(lab.say(late.session, token_turn(prompt(2, 90), 6)));
  // 2 x 6 pages are held; a turn of 10 wants two more than are free, and the next turn of the late one wants another.
  const SessionActor third = lab.open();
  ASSERT_TRUE(lab.say(third, token_turn(prompt(3, 150), 6)));
  EXPECT_EQ(lab.say(late.session, token_turn(prompt(4, 5), 6))->cached_tokens, 95) << "it was never asked";
  EXPECT_EQ(lab.say(early.session, token_turn(prompt(4, 5), 6))->cached_tokens, 48)
      << "of six pages the three at the end were needed";
}

TEST(Sleep, overlapping_turns_of_all_complete) {
  ActorLab lab({}, lab_options(24));
  std::vector<SessionActor> sessions;
  for (int i = 0; i < 30; ++i) sessions.push_back(lab.open());
  for (int round = 0; round < 3; ++round) {
    using Pending = decltype(lab.self()->request(sessions[0], std::chrono::seconds(60), say_atom_v, Turn()));
    std::vector<Pending> pending;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const Turn turn = token_turn(prompt(static_cast<int>(i) + 50 * round, 20), 12);
      pending.push_back(lab.self()->request(sessions[i], std::chrono::seconds(60), say_atom_v, turn));
    }
    for (Pending& one : pending) {
      one.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 12u); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
    }
  }
  for (const SessionActor& session : sessions) lab.self()->send(session, close_atom_v);
  EXPECT_EQ(lab.free_pages_at_rest(), 24);
  promise("C4", "90 turns of 30 sessions at once on 24 pages: all complete");
}

TEST(Sleep, works_without_an_index_too) {
  SupervisorOptions options;
  options.prefix_memory = 0;
  ActorLab lab(options, lab_options(12));
  std::vector<Talker> talks;
  for (int i = 0; i < 8; ++i) talks.push_back({lab.open(), {}});
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < talks.size(); ++i)
      talks[i].turn(lab, static_cast<int>(10 * round + static_cast<int>(i)));
  }
}

// The head of the line finds three pages of a prefix, a running turn holds the room for the rest, nobody is idle.
TEST(Sleep, a_turn_that_finds_its_beginning_but_no_room_waits_and_the_house_goes_on) {
  std::latch may_end(1);
  std::atomic<bool> closed{false};
  std::shared_ptr<Engine> engine;
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    if (closed) may_end.wait();
    engine->run(batch);
  };
  ActorLab lab(options, lab_options(10));
  engine = lab.shared_engine();
  const SessionActor first = lab.open();
  ASSERT_TRUE(lab.say(first, token_turn(prompt(77, 50), 2)));
  caf::anon_send(first, close_atom_v);
  ASSERT_EQ(lab.free_pages_at_rest(), 10);
  closed = true;
  const SessionActor busy = lab.open(), waiter = lab.open();
  auto one = lab.self()->request(busy, std::chrono::seconds(60), say_atom_v, token_turn(prompt(1, 40), 40));
  while (lab.engine().pages()->used() < 8) std::this_thread::yield();
  const Turn eight_pages = token_turn(prompt(77, 50), 70);
  auto two = lab.self()->request(waiter, std::chrono::seconds(60), say_atom_v, eight_pages);
  while (lab.describe().waiting == 0) std::this_thread::yield();
  may_end.count_down();
  one.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 40u); },
              [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  two.receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, lab.solo(eight_pages)); },
              [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
}

TEST(Sleep, sessions_that_were_loaded_or_forked_make_room_before_their_first_turn) {
  const ScratchFolder folder;
  ActorLab lab({}, lab_options(12));
  Turn eight_pages = token_turn(prompt(2, 120), 6);
  eight_pages.time_limit = std::chrono::seconds(30);
  const SessionActor origin = lab.open();
  ASSERT_TRUE(lab.say(origin, token_turn(prompt(1, 90), 6)));
  const auto branch = lab.ask<SessionActor>(lab.host(), fork_atom_v, origin, std::int64_t{-1});
  ASSERT_TRUE(branch && lab.ask<bool>(lab.host(), save_atom_v, origin, folder.file("chat")));
  ASSERT_TRUE(lab.say(lab.open(), eight_pages));
  caf::anon_send(origin, close_atom_v);
  caf::anon_send(*branch, close_atom_v);
  ASSERT_EQ(lab.free_pages_at_rest(), 12);
  const auto loaded = lab.ask<SessionActor>(lab.host(), load_atom_v, folder.file("chat"));
  ASSERT_TRUE(loaded && lab.say(lab.open(), eight_pages));
}

TEST(Sleep, a_session_that_was_planning_when_it_was_asked_makes_room_afterwards) {
  ActorLab lab({}, lab_options(12));
  // Rendering four megabytes takes the text actor a while; the prompt is then refused as too long.
  const SessionActor slow = lab.open({.system = std::string(4'000'000, 'y'), .past = {}, .sampling = {}, .key = {}});
  ASSERT_TRUE(lab.say(slow, token_turn(prompt(1, 90), 6)));
  Turn message;
  message.text = "x";
  auto planning = lab.self()->request(slow, std::chrono::seconds(60), say_atom_v, message);
  EXPECT_TRUE(lab.say(lab.open(), token_turn(prompt(2, 120), 6)));
  planning.receive([](TurnEnd&) { ADD_FAILURE() << "four megabytes fit a context of 1024"; },
                   [](caf::error& error) { EXPECT_EQ(error, ErrorCode::context_length); });
}

}  // namespace
}  // namespace troupe::test
