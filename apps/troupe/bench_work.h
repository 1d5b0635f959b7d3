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
