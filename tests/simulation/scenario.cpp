#include "tests/simulation/scenario.h"

#include <numeric>

namespace troupe::test {
namespace {

// How often each comes, where it comes at all; the first nine are no trouble and come in every scenario.
struct Kind {
  Event event;
  const char* name;
  std::int64_t weight;
};
constexpr Kind kKinds[] = {
    {Event::say, "say", 40},
    {Event::say_nothing, "say nothing", 4},
    {Event::say_too_much, "say too much", 1},
    {Event::pass_time, "pass time", 30},
    {Event::stop, "stop", 8},
    {Event::close, "close", 4},
    {Event::fork, "fork", 8},
    {Event::read_transcript, "read transcript", 3},
    {Event::rest, "rest", 1},
    {Event::kill_session, "kill session", 6},
    {Event::vanish, "vanish", 4},
    {Event::stall, "stall", 8},
    {Event::read_on, "read on", 8},
    {Event::take_pages, "take pages", 6},
    {Event::give_pages, "give pages", 8},
    {Event::step_fault, "step fault", 6},
    {Event::device_fault, "device fault", 4},
    {Event::kill_batcher, "kill batcher", 4},
    {Event::kill_text_actor, "kill text actor", 2},
    {Event::hang, "hang", 1},
    {Event::jump, "jump", 2},
    {Event::drain, "drain", 1},
};
static_assert(std::size(kKinds) == kEvents);
constexpr std::size_t kPeaceful = 9;

template <std::size_t n>
std::int64_t one_of(const std::int64_t (&values)[n], Random& random) {
  return values[random.below(n)];
}

// Prompts of one family begin alike.
std::vector<TokenId> draw_prompt(Random& random) {
  std::vector<TokenId> tokens;
  if (random.below(2) == 0) {
    Random family(static_cast<std::uint64_t>(1 + random.below(2)));
    const std::int64_t common = one_of({16, 33, 48, 64}, random);
    for (std::int64_t i = 0; i < common; ++i) tokens.push_back(static_cast<TokenId>(3 + family.below(250)));
  }
  const std::int64_t own = 1 + random.below(24);
  for (std::int64_t i = 0; i < own; ++i) tokens.push_back(static_cast<TokenId>(3 + random.below(250)));
  return tokens;
}

}  // namespace

const char* name(Event event) {
  return kKinds[static_cast<std::size_t>(event)].name;
}

Scenario::Scenario(Random& random)
    : schedule(static_cast<Schedule>(random.below(kSchedules))),
      pages(one_of({8, 12, 20, 48}, random)),
      max_rows(one_of({8, 24, 512}, random)),
      users(2 + random.below(6)),
      events(20 + random.below(100)),
      max_sessions(random.below(8) == 0 ? 3 : 1000),
      prefix_memory(static_cast<std::uint64_t>(one_of({0, 4 * 4096, 1 << 30, 1 << 30}, random))),
      drafts(static_cast<std::int32_t>(one_of({0, 1, 8}, random))),
      mayhem(random.below(8) == 0),
      deadlines(random.below(2) == 0),
      doom(random.below(3) == 0) {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    const bool comes = i < kPeaceful || random.below(2) == 0;
    weights_.push_back(comes ? kKinds[i].weight : 0);
  }
}

Event Scenario::draw(Random& random) const {
  std::int64_t left = random.below(std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0}));
  std::size_t i = 0;
  while (left >= weights_[i]) left -= weights_[i++];
  return static_cast<Event>(i);
}

Turn Scenario::draw_turn(Random& random) const {
  Turn turn;
  turn.kind = Turn::Kind::tokens;
  turn.tokens = draw_prompt(random);
  turn.limits.max_tokens = static_cast<std::int32_t>(1 + random.below(14));
  turn.limits.ignore_eos = random.below(2) == 0;
  turn.limits.min_tokens = static_cast<std::int32_t>(random.below(3));
  if (random.below(4) == 0) turn.limits.stop = {"\x01"};  // never comes, but every text has to be looked at
  turn.sampling = SamplingParams{};
  turn.sampling->seed = random.next();
  turn.sampling->frequency_penalty = random.below(3) == 0 ? 0.5f : 0.0f;
  turn.credit = static_cast<std::int32_t>(one_of({1, 2, 64}, random));
  if (deadlines && random.below(6) == 0) turn.time_limit = std::chrono::milliseconds(1 + random.below(300));
  return turn;
}

std::string Scenario::describe() const {
  std::string kinds;
  for (std::size_t i = kPeaceful; i < weights_.size(); ++i) {
    if (weights_[i] > 0) kinds += std::string(kinds.empty() ? "" : ", ") + kKinds[i].name;
  }
  return std::to_string(users) + " users, " + std::to_string(pages) + " pages, " + std::to_string(max_rows) +
         " rows a launch, " + std::to_string(drafts) + " guesses, schedule " +
         std::to_string(static_cast<int>(schedule)) + ", trouble: " + kinds;
}

}  // namespace troupe::test
