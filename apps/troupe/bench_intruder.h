// A long prompt that comes while others talk: how long those wait for their next token meanwhile, and how fast the
// prompt is computed, beside being alone.
#pragma once

#include <memory>
#include <vector>

#include "apps/troupe/bench_work.h"
#include "kernels/result.h"
#include "runtime/engine.h"

namespace troupe::app {

struct IntruderResult {
  double first_token_ms = 0;                  // of the long prompt
  double alone_ms = 0;                        // the same with nobody else
  std::vector<double> usual_gap_ms;           // between the others' tokens before it came
  std::vector<double> gap_ms;                 // and until its first token
  std::vector<std::vector<TokenId>> answers;  // of the others, as far as they got
};

// Tokens that each of the others may generate. Each speaks until the intruder is done, or to this length.
std::int32_t longest_answer(const Load& load, std::int32_t intruder);

// The load's sessions come at once. When each has said Load::generate tokens, a prompt of `intruder` tokens comes.
Result<IntruderResult> run_intruder(const std::shared_ptr<Engine>& engine, const Load& load, std::int32_t intruder);

}  // namespace troupe::app
