#include "apps/troupe/bench_work.h"

#include <cmath>
#include <utility>

namespace troupe::app {
namespace {

// SplitMix64, as a number in [0, 1).
double next_uniform(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ull;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

std::vector<TokenId> tokens_of(std::uint64_t number, std::int32_t count, std::int64_t vocabulary) {
  std::vector<TokenId> ids;
  std::uint64_t state = 0x9E3779B97F4A7C15ull * number;
  for (std::int32_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    ids.push_back(static_cast<TokenId>((state >> 33) % static_cast<std::uint64_t>(vocabulary)));
  }
  return ids;
}

std::vector<TokenId> prompt_of(int session, const Load& load, std::int64_t vocabulary) {
  std::vector<TokenId> ids = tokens_of(0, load.shared, vocabulary);
  for (TokenId id : tokens_of(static_cast<std::uint64_t>(session) + 1, load.prompt - load.shared, vocabulary)) {
    ids.push_back(id);
  }
  return ids;
}

Turn token_turn(std::vector<TokenId> tokens, std::int32_t generate) {
  Turn turn;
  turn.kind = Turn::Kind::tokens;
  turn.tokens = std::move(tokens);
  turn.limits.max_tokens = generate;
  turn.limits.ignore_eos = true;
  turn.sampling = SamplingParams::greedy();
  turn.time_limit = kLongestTurn;
  return turn;
}

std::vector<Seconds> arrivals_of(const Load& load) {
  std::vector<Seconds> times;
  std::uint64_t state = load.seed;
  Seconds now{0};
  for (int i = 0; i < load.sessions; ++i) {
    if (load.arrivals_a_second > 0.0) now += Seconds(-std::log1p(-next_uniform(state)) / load.arrivals_a_second);
    times.push_back(now);
  }
  return times;
}

}  // namespace troupe::app
