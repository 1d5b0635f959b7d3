// Cancels and deaths at random moments, in every phase of a session: pages come back, neighbours do not notice.
#include <array>
#include <iostream>
#include <random>

#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

constexpr int kPhases = static_cast<int>(SessionPhase::parked) + 1;

// A sink that takes everything and gives no credit: its session parks after the turn's first deltas.
SinkActor spawn_silent_sink(caf::actor_system& system) {
  return system.spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
}

class Chaos {
 public:
  explicit Chaos(unsigned seed)
      : lab_({}, lab_options(kPages), long_path()), random_(seed), silent_(spawn_silent_sink(lab_.system())) {}

  // 1,792 tokens. The neighbour holds up to 25 pages; a turn of 1,710 tokens needs 107 and has to wait for it.
  static constexpr int kPages = 112;

  void run(int hits) {
    const std::int64_t baseline = lab_.engine().pages()->free();
    neighbour_ = lab_.open();
    for (int i = 0; i < hits; ++i) {
      if (!neighbour_running_) ask_neighbour();
      hit_one(static_cast<SessionPhase>(i % kPhases));
      poll_neighbour();
    }
    finish_neighbour();
    lab_.self()->send(neighbour_, close_atom_v);
    EXPECT_EQ(lab_.free_pages_at_rest(), baseline) << "every page must come back";
    print();
    lab_.self()->send_exit(silent_, caf::exit_reason::user_shutdown);
    lab_.self()->wait_for(silent_);
  }

  const std::array<int, kPhases>& hits() const { return hits_; }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  void ask_neighbour() {
    neighbour_turn_ = token_turn(prompt(500 + below(50), 5), 40, random_());
    const auto past = lab_.ask<Transcript>(neighbour_, transcript_atom_v);
    neighbour_expected_ = [this, tokens = past->tokens]() mutable {
      tokens.insert(tokens.end(), neighbour_turn_.tokens.begin(), neighbour_turn_.tokens.end());
      Turn whole = neighbour_turn_;
      whole.tokens = tokens;
      return whole;
    }();
    neighbour_running_.emplace(
        lab_.self()->request(neighbour_, std::chrono::seconds(120), say_atom_v, neighbour_turn_));
    ++neighbour_turns_;
  }

  // The neighbour's turn ends by itself: every 16 hits it is looked at, and asked anew.
  void poll_neighbour() {
    if (++since_poll_ % 16 == 0) finish_neighbour();
  }

  void finish_neighbour() {
    if (!neighbour_running_) return;
    neighbour_running_->receive([&](TurnEnd& end) { answers_.emplace_back(neighbour_expected_, end.tokens); },
                                [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
    neighbour_running_.reset();
    // The session is closed before its context fills; the next turn begins with a new one.
    if (neighbour_expected_.tokens.size() > 300) {
      lab_.self()->send(neighbour_, close_atom_v);
      neighbour_ = lab_.open();
    }
  }

  Turn victim_turn(SessionPhase wanted) {
    switch (wanted) {
      case SessionPhase::planning: {
        Turn turn;
        turn.kind = Turn::Kind::text;
        turn.text = std::string(20'000 + static_cast<std::size_t>(below(20'000)), 'a');  // goes to the text actor
        return turn;
      }
      case SessionPhase::prefilling:
        return token_turn(prompt(below(1000), 900 + below(200)), 4);
      case SessionPhase::queued:
        return token_turn(prompt(below(1000), 10), 1700);
      default:
        return token_turn(prompt(below(1000), 3), 60);
    }
  }

  // One victim: brought near the wanted phase, then stopped, closed or killed. What it really met is counted.
  void hit_one(SessionPhase wanted) {
    const SessionActor victim = lab_.open();
    Turn turn = victim_turn(wanted);
    if (wanted != SessionPhase::idle) start(victim, turn, wanted == SessionPhase::parked);
    settle(wanted);
    strike(victim);
  }

  void start(const SessionActor& victim, Turn turn, bool parks) {
    if (parks) {
      turn.credit = 1;
      caf::anon_send(victim, say_atom_v, turn, silent_);
    } else {
      caf::anon_send(victim, say_atom_v, turn);
    }
  }

  void settle(SessionPhase wanted) {
    switch (wanted) {
      case SessionPhase::idle:
      case SessionPhase::planning:
        return;
      case SessionPhase::prefilling:
        return std::this_thread::sleep_for(std::chrono::microseconds(below(1000)));
      case SessionPhase::queued:
        return std::this_thread::sleep_for(std::chrono::microseconds(200 + below(500)));
      case SessionPhase::decoding:
        return std::this_thread::sleep_for(std::chrono::microseconds(800 + below(3000)));
      case SessionPhase::parked:
        return std::this_thread::sleep_for(std::chrono::microseconds(3000 + below(3000)));
    }
  }

  void strike(const SessionActor& victim) {
    const int how = below(3);
    if (how == 0) {
      // A death without a word: the phase it met is asked for just before.
      lab_.self()->send_exit(victim, caf::exit_reason::kill);
      ++deaths_;
      return;
    }
    const auto met =
        how == 1 ? lab_.ask<SessionPhase>(victim, stop_atom_v) : lab_.ask<SessionPhase>(victim, close_atom_v);
    ASSERT_TRUE(met) << met.error().message;
    ++hits_[static_cast<std::size_t>(*met)];
    if (how == 1) lab_.self()->send(victim, close_atom_v);
  }

  void print() {
    int wrong = 0;
    for (const auto& [turn, tokens] : answers_) wrong += lab_.solo(turn) == tokens ? 0 : 1;
    EXPECT_EQ(wrong, 0) << "a neighbour's tokens changed";
    std::cout << "hits:";
    for (int p = 0; p < kPhases; ++p)
      std::cout << ' ' << name(static_cast<SessionPhase>(p)) << ' ' << hits_[static_cast<std::size_t>(p)];
    std::cout << "; killed " << deaths_ << "; neighbour turns " << neighbour_turns_ << ", " << wrong << " changed\n";
  }

  using Pending = decltype(std::declval<caf::scoped_actor&>()->request(SessionActor(), std::chrono::seconds(1),
                                                                       say_atom_v, Turn()));

  ActorLab lab_;
  std::mt19937 random_;
  SinkActor silent_;
  std::array<int, kPhases> hits_{};
  int deaths_ = 0, neighbour_turns_ = 0, since_poll_ = 0;
  SessionActor neighbour_;
  Turn neighbour_turn_, neighbour_expected_;
  std::optional<Pending> neighbour_running_;
  std::vector<std::pair<Turn, std::vector<TokenId>>> answers_;
};

TEST(Chaos, cancels_and_deaths_in_every_phase_leave_no_page_and_no_neighbour_changed) {
  const int hits = small_scale() ? 200 : 10'000;
  Chaos chaos(42);
  chaos.run(hits);
  for (int phase = 0; phase < kPhases; ++phase) {
    EXPECT_GE(chaos.hits()[static_cast<std::size_t>(phase)], small_scale() ? 1 : 100)
        << name(static_cast<SessionPhase>(phase));
  }
  promise("C21", with_commas(hits) + " cancels and deaths, every phase met at least 100 times");
  promise("N11", with_commas(hits) + " at random; all pages back, no neighbour's token changed");
  promise("C7", with_commas(hits) + " cancels and deaths beside launches");
}

TEST(Chaos, a_host_starts_and_stops_a_thousand_times) {
  const int rounds = small_scale() ? 50 : 1000;
  auto engine = Engine::open(tiny_path(), lab_options());
  ASSERT_TRUE(engine);
  const std::shared_ptr<Engine> shared(std::move(*engine));
  for (int i = 0; i < rounds; ++i) {
    caf::actor_system_config config;
    configure(config);
    caf::actor_system system{config};
    caf::scoped_actor self{system};
    const HostControl host = spawn_supervisor(system, shared, {});
    if (i % 3 != 0) {  // with a session that is still in a turn, or that has ended one, or with none
      self->request(host, std::chrono::seconds(60), open_atom_v, OpenSession{})
          .receive(
              [&](SessionActor& session) {
                caf::anon_send(session, say_atom_v, token_turn(prompt(i, 4), i % 3 == 1 ? 1 : 50));
              },
              [](caf::error& error) { FAIL() << caf::to_string(error); });
    }
    self->send_exit(host, caf::exit_reason::user_shutdown);
    self->wait_for(host);
  }
  EXPECT_EQ(shared->pages()->used(), 0);
}

}  // namespace
}  // namespace troupe::test
