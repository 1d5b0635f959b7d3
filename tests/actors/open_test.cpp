// Sessions are cheap: many are opened and closed, and nothing is left of them.
#include <chrono>

#include "tests/actors/actor_lab.h"
#include "tests/support/resident.h"

namespace troupe::test {
namespace {

std::vector<SessionActor> open_many(ActorLab& lab, int count) {
  std::vector<SessionActor> sessions;
  for (int i = 0; i < count; ++i) sessions.push_back(lab.open());
  return sessions;
}

TEST(Open, an_idle_session_takes_less_than_64_kilobytes_and_a_millisecond) {
  ActorLab lab;
  open_many(lab, 10);
  const double before = resident_kilobytes();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<SessionActor> sessions = open_many(lab, 2'000);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::cout << "a session: " << (resident_kilobytes() - before) / 2'000 << " KB, " << took.count() / 2'000 << " ms\n";
  EXPECT_TRUE(!memory_counts() || (resident_kilobytes() - before) / 2'000 < 64.0);
  EXPECT_EQ(lab.describe().sessions, 2'000);
  promise("C2", "an idle one takes less than 64 KB");
}

TEST(Open, a_hundred_thousand_that_come_and_go_leave_nothing) {
  ActorLab lab;
  const std::int64_t free = lab.engine().pages()->total();
  const int thousands = small_scale() ? 3 : 100;
  double after_first = 0;
  std::size_t actors = 0;
  for (int i = 0; i < thousands; ++i) {
    std::vector<SessionActor> sessions = open_many(lab, 1'000);
    ASSERT_TRUE(i % 10 != 0 || lab.say(sessions[0], token_turn(prompt(i, 40), 3)));
    // Half are closed, the others dropped.
    for (std::size_t s = 0; s < sessions.size(); s += 2) caf::anon_send(sessions[s], close_atom_v);
    sessions.clear();
    ASSERT_EQ(lab.free_pages_at_rest(), free);
    if (i > thousands / 10) continue;
    after_first = resident_kilobytes();
    actors = lab.system().registry().running();
  }
  EXPECT_EQ(lab.describe().sessions, 0);
  EXPECT_EQ(lab.system().registry().running(), actors);
  const double grown = resident_kilobytes() - after_first;
  EXPECT_TRUE(!memory_counts() || grown < 4096.0) << grown << " KB are left of those that are gone";
  promise("C2", with_commas(1'000 * thousands) + " opened and closed leave no page, no actor, less than 4 MB");
}

}  // namespace
}  // namespace troupe::test
