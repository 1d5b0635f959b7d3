// What a session tells of its time and its pages, where time stands still unless it is moved.
#include <gtest/gtest.h>

#include "actors/errors.h"
#include "tests/simulation/house.h"
#include "tests/simulation/simulation.h"
#include "tests/support/scratch_folder.h"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLaunch = 10ms;

Turn tokens_turn(int tokens, int max_tokens) {
  Turn turn;
  turn.kind = Turn::Kind::tokens;
  for (int i = 0; i < tokens; ++i) turn.tokens.push_back(3 + i % 400);
  turn.limits.max_tokens = max_tokens;
  turn.limits.ignore_eos = true;
  turn.sampling = SamplingParams::greedy();
  return turn;
}

// A house in which a launch takes 10 ms and nothing else takes time; it moves whenever something is asked.
class StillHouse {
 public:
  explicit StillHouse(std::int64_t pages, std::uint64_t prefix_memory = 0)
      : engine_(Engines().of(pages, EngineOptions{}.max_rows)) {
    SupervisorOptions options;
    options.prefix_memory = prefix_memory;
    options.run = [this](std::span<Slice> batch) {
      pass(kLaunch);
      engine_->run(batch);
    };
    house_.emplace(engine_, std::move(options), Schedule::uniform, random_);
    self_.emplace(house_->system());
    move();
  }
  ~StillHouse() {
    self_.reset();
    house_->end_host();
    move();
  }

  void pass(caf::timespan time) {
    cost_ = cost_ + PageTime::of(engine_->pages()->used(), time);
    house_->advance(time);
  }
  void move() {
    while (house_->run_one()) {
    }
  }
  // Until an actor of this name has taken such a message.
  void move_until(const std::string& name, const std::string& message) {
    for (std::string who; who.find(name) != 0 || who.find(message) == std::string::npos;) {
      if (!house_->run_one(&who)) throw std::runtime_error(name + " never took " + message);
    }
  }

  template <class Receiver, class... Message>
  auto request(const Receiver& receiver, const Message&... message) {
    return (*self_)->request(receiver, caf::infinite, message...);
  }
  template <class Answer, class Handle>
  Answer answer(Handle&& handle) {
    move();
    Answer answer{};
    handle.receive([&](Answer& value) { answer = std::move(value); },
                   [](caf::error& error) { throw std::runtime_error(from_caf(error).message); });
    return answer;
  }
  template <class Answer, class Receiver, class... Message>
  Answer ask(const Receiver& receiver, const Message&... message) {
    return answer<Answer>(request(receiver, message...));
  }
  SessionActor open() { return ask<SessionActor>(house_->host(), open_atom_v, OpenSession{}); }
  TurnEnd say(const SessionActor& session, const Turn& turn) { return ask<TurnEnd>(session, say_atom_v, turn); }
  SessionTrace trace(const SessionActor& session) { return ask<SessionTrace>(session, trace_atom_v); }
  PageBill bill() { return ask<HostInfo>(house_->host(), describe_atom_v).bill; }
  const HostControl& host() { return house_->host(); }
  PagePool& pages() { return *engine_->pages(); }
  KvCache all_pages() {
    KvCache cache(engine_->pages());
    EXPECT_TRUE(cache.reserve(KvLayout::kPageTokens * engine_->pages()->free()));
    return cache;
  }
  caf::scoped_actor& self() { return *self_; }
  caf::actor_system& system() { return house_->system(); }
  // What all used pages have cost.
  PageTime cost() const { return cost_; }

 private:
  Random random_{7};
  std::shared_ptr<Engine> engine_;
  std::optional<House> house_;
  std::optional<caf::scoped_actor> self_;
  PageTime cost_;
};

void expect_times(const SessionTrace& trace, SessionPhase phase, const PhaseTimes& times) {
  EXPECT_EQ(trace.phase, phase);
  EXPECT_EQ(trace.age, trace.times.sum());
  EXPECT_EQ(trace.times.idle, times.idle);
  EXPECT_EQ(trace.times.asleep, times.asleep);
  EXPECT_EQ(trace.times.planning, times.planning);
  EXPECT_EQ(trace.times.queued, times.queued);
  EXPECT_EQ(trace.times.prefilling, times.prefilling);
  EXPECT_EQ(trace.times.decoding, times.decoding);
  EXPECT_EQ(trace.times.parked, times.parked);
}

TEST(TracedSession, knows_to_the_nanosecond_how_long_it_was_in_each_phase) {
  StillHouse house(20);
  const SessionActor session = house.open();
  house.pass(5s);
  expect_times(house.trace(session), SessionPhase::idle, {.idle = 5s});

  house.say(session, tokens_turn(40, 6));
  PhaseTimes times{.idle = 5s, .prefilling = kLaunch, .decoding = 5 * kLaunch};
  expect_times(house.trace(session), SessionPhase::idle, times);

  Turn text = tokens_turn(0, 2);
  text.kind = Turn::Kind::text;
  text.text = std::string(17'000, 'q');  // for the text actor, and too long for the context
  auto refused = house.request(session, say_atom_v, text);
  house.move_until("troupe.session", "say_atom");
  house.pass(1s);
  house.move();
  refused.receive([](TurnEnd&) { ADD_FAILURE() << "17,000 letters fit"; }, [](caf::error&) {});
  times.planning = 1s;
  expect_times(house.trace(session), SessionPhase::idle, times);

  std::optional<KvCache> hold(house.all_pages());
  auto in_line = house.request(session, say_atom_v, tokens_turn(30, 1));
  house.move();
  house.pass(2s);
  times.queued = 2s;
  expect_times(house.trace(session), SessionPhase::queued, times);
  hold.reset();
  house.pass(SupervisorOptions::kTick);
  house.answer<TurnEnd>(in_line);
  times.queued += SupervisorOptions::kTick;
  times.prefilling += kLaunch;
  expect_times(house.trace(session), SessionPhase::idle, times);

  EXPECT_TRUE(house.ask<bool>(caf::actor_cast<SessionControl>(session), sleep_atom_v));
  house.pass(3s);
  times.asleep = 3s;
  expect_times(house.trace(session), SessionPhase::idle, times);
}

TEST(TracedSession, counts_what_it_waits_for_its_reader_apart_from_decoding) {
  StillHouse house(20);
  const SessionActor session = house.open();
  const SinkActor sink =
      house.system().spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
  Turn turn = tokens_turn(20, 40);
  turn.credit = 3;
  auto pending = house.request(session, say_atom_v, turn, sink);
  house.move();
  const PhaseTimes before = house.trace(session).times;
  EXPECT_GT(before.decoding, 0ms);
  house.pass(4s);
  PhaseTimes parked = before;
  parked.parked = 4s;
  expect_times(house.trace(session), SessionPhase::parked, parked);
  house.self()->send(session, credit_atom_v, std::int32_t{100});
  const auto end = house.answer<TurnEnd>(pending);
  parked.decoding = 39 * kLaunch;
  expect_times(house.trace(session), SessionPhase::idle, parked);
  EXPECT_EQ(end.parked, Seconds(4.0));
  EXPECT_EQ(end.page_time, house.trace(session).page_time) << "one turn, and no time since";
  house.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

TEST(TracedSession, pays_for_the_pages_that_it_took_as_long_as_it_has_them) {
  StillHouse house(40, std::uint64_t{1} << 30);
  const SessionActor first = house.open(), second = house.open();
  house.say(first, tokens_turn(40, 6));
  house.pass(1s);
  house.say(second, tokens_turn(40, 6));
  const auto branch = house.ask<SessionActor>(house.host(), fork_atom_v, first, std::int64_t{-1});
  const PageTime before = house.trace(first).page_time, before_second = house.trace(second).page_time;
  EXPECT_EQ(before + before_second, house.cost());
  house.pass(1s);
  // 45 tokens: two full pages, which the second session found, and one begun. The fork took none.
  EXPECT_EQ(house.trace(first).page_time - before, PageTime::of(3, 1s));
  EXPECT_EQ(house.trace(second).page_time - before_second, PageTime::of(1, 1s));
  EXPECT_EQ(house.trace(branch).page_time, PageTime{});
  EXPECT_EQ(house.bill().house, PageTime{});

  house.ask<SessionPhase>(first, close_atom_v);
  house.pass(1s);  // all three are held on, by the others and the index
  EXPECT_EQ(house.bill().house, PageTime::of(3, 1s));
  EXPECT_EQ(house.bill().ended, before + PageTime::of(3, 1s));
  EXPECT_EQ(house.bill().living, house.trace(second).page_time);
  EXPECT_EQ(house.bill().total, house.cost());
  EXPECT_EQ(house.bill().total, house.bill().house + house.bill().living + house.bill().ended);
}

TEST(TracedSession, pays_for_what_was_read_for_it_from_a_file) {
  const ScratchFolder folder;
  StillHouse house(40);
  const SessionActor origin = house.open();
  house.say(origin, tokens_turn(40, 6));
  EXPECT_TRUE(house.ask<bool>(house.host(), save_atom_v, origin, folder.file("saved")));
  const auto loaded = house.ask<SessionActor>(house.host(), load_atom_v, folder.file("saved"));
  house.pass(1s);
  EXPECT_EQ(house.trace(loaded).page_time, PageTime::of(3, 1s));
  EXPECT_EQ(house.bill().house, PageTime{});
}

}  // namespace
}  // namespace troupe::test
