// The load of `troupe bench`: N sessions with distinct prompts, all at once, greedy, to a fixed length.
//
// Everything is counted where a user would stand: at the sink. The same work in a plain loop over the same engine
// (plain_loop.h) tells what the actor layer costs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/records.h"
#include "kernels/result.h"
#include "runtime/engine.h"

namespace troupe::app {

struct Load {
  int sessions = 1;
  std::int32_t prompt = 32;    // tokens
  std::int32_t generate = 64;  // tokens
  bool fuse = true;
};

struct LoadResult {
  double seconds = 0;                  // from the first request to the last token
  double decode_seconds = 0;           // from the first launch in which all decode to the last token
  double tokens_per_second = 0;        // all sessions together, over the time in which they decode
  std::vector<double> first_token_ms;  // by session
  std::vector<double> gap_ms;          // between tokens, all sessions
  LaunchStats launches;
  double mean_width = 0;  // sessions in a launch, from the last first token to the first end
  std::vector<std::vector<TokenId>> answers;
};

// A host of its own in an actor system of its own, on `engine`; nobody else may use the engine meanwhile.
Result<LoadResult> run_load(const std::shared_ptr<Engine>& engine, const Load& load);

// Distinct prompts, spread over the vocabulary by a fixed rule.
std::vector<TokenId> prompt_of(int session, std::int32_t tokens, std::int64_t vocabulary);

// GB/s of reading a gigabyte with so many threads, best of several passes; an Error where there is no room for either.
Result<double> read_bandwidth(int threads);

}  // namespace troupe::app
