// The load of `troupe bench` by Engine::run alone, with no actor: what the engine itself can do.
#pragma once

#include <vector>

#include "apps/troupe/bench_load.h"
#include "runtime/engine.h"

namespace troupe::app {

struct LoopResult {
  double seconds_a_launch = 0;  // the median decode launch
  double tokens_per_second = 0;
  double prefill_tokens_per_second = 0;  // one prompt after another
  std::vector<std::vector<TokenId>> answers;
};

// Prompts in launches of up to Engine::max_rows() rows, then one launch a step for all sessions (or as few as can be).
// Throws what Engine::run does. The pool must hold all sessions.
LoopResult run_loop(Engine& engine, const Load& load);

}  // namespace troupe::app
