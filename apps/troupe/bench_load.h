// The load of `troupe bench`: N sessions with distinct prompts, at once or one by one, greedy, to a fixed length.
//
// Everything is counted where a user would stand: at the sink. The same work in a plain loop over the same engine
// (plain_loop.h) tells what the actor layer costs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/records.h"
#include "apps/troupe/bench_work.h"
#include "kernels/result.h"
#include "runtime/engine.h"

namespace troupe::app {

struct LoadResult {
  double seconds = 0;  // from the first request to the last token
  // All sessions together, over the time in which all decode; where they come one by one, over all of it.
  double tokens_per_second = 0;
  std::vector<double> first_token_ms;  // by session, since it came
  std::vector<double> gap_ms;          // between tokens, all sessions
  LaunchStats launches;
  double mean_width = 0;           // sessions in a launch, from the last first token to the first end, or of all
  std::int64_t cached_tokens = 0;  // of the prompts, found in the index of prefixes
  std::vector<std::vector<TokenId>> answers;
  CompanyResult company;  // of Load::company; nothing else here counts its sessions, but `launches` and `mean_width`
};

// A host of its own in an actor system of its own, on `engine`; nobody else may use the engine meanwhile.
Result<LoadResult> run_load(const std::shared_ptr<Engine>& engine, const Load& load);

// GB/s of reading a gigabyte with so many threads, best of several passes; an Error where there is no room for either.
Result<double> read_bandwidth(int threads);

}  // namespace troupe::app
