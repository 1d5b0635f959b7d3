// The work of `troupe bench`: which prompts, and when they come. The same on every machine and in every run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/records.h"
#include "runtime/engine.h"
#include "runtime/record/record_writer.h"
#include "runtime/time.h"

namespace troupe::app {

inline constexpr auto kLongestTurn = std::chrono::hours(1);

// Sessions beside those of a load (bench_company.h). The turns are short, of 1 to 8 tokens by a fixed rule, one after
// another, each of a session of its own.
struct Company {
  enum class Kind {
    short_turns,      // end by themselves
    cancelled_turns,  // ask for more, and are cancelled when they have said as much
    stalled_readers,  // one turn each, whose sink gives no credit back: parked
  };
  Kind kind = Kind::short_turns;
  int sessions = 0;

  static constexpr std::int32_t kTokens = 64;  // that each may hold, the prompt included
};

// What it did from its first turn until it left.
struct CompanyResult {
  double seconds = 0;
  std::int64_t turns = 0;    // that ended
  std::int64_t cancels = 0;  // of these, by a cancel
  std::int64_t parked = 0;   // readers that stood still at the end
};

struct Load {
  int sessions = 1;
  std::int32_t prompt = 32;    // tokens
  std::int32_t generate = 64;  // tokens
  bool fuse = true;
  std::int32_t drafts = 0;                 // tokens that a session may guess
  std::shared_ptr<Engine> draft{};         // a model that guesses too; may be null
  std::int32_t shared = 0;                 // tokens that all prompts begin with; fewer than `prompt`
  double arrivals_a_second = 0.0;          // of a Poisson process; 0: all sessions come at once
  std::uint64_t seed = 1;                  // of the arrivals
  std::shared_ptr<RecordWriter> record{};  // SupervisorOptions::record
  Company company{};                       // beside it
};

// Tokens spread over the vocabulary by a fixed rule; another number, other tokens.
std::vector<TokenId> tokens_of(std::uint64_t number, std::int32_t count, std::int64_t vocabulary);
// What the load's session says: Load::shared tokens that all say, and then its own.
std::vector<TokenId> prompt_of(int session, const Load& load, std::int64_t vocabulary);
// Greedy, to a fixed length.
Turn token_turn(std::vector<TokenId> tokens, std::int32_t generate);

// When each session comes, after the beginning; rising.
std::vector<Seconds> arrivals_of(const Load& load);

}  // namespace troupe::app
