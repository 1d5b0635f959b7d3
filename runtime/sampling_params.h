// SamplingParams: how one session chooses its next token. SamplerState: what that choice remembers of its past.
//
// The order of the rules, each skipped at its neutral value:
//   logit bias -> repetition penalty -> frequency and presence penalties -> ban of end tokens -> temperature
//   -> top-k -> top-p -> min-p -> draw.
// The candidates that top_k leaves weigh exp(l / T - best / T). top_p keeps the fewest best ones whose weights sum to
// at least p of all of these; min_p then drops those that weigh less than p times the best. The best always stays.
// temperature 0 is greedy: the largest logit after bias and penalties, ties to the lower id.
// Repetition penalty counts prompt and answer (Keskar et al. 2019, CTRL: l > 0 ? l / r : l * r); frequency and presence
// penalties count the answer only (as the OpenAI API words them: l - count * frequency - (count > 0) * presence).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/token.h"

namespace troupe {

struct SamplingParams {
  float temperature = 0.8f;                             // >= 0
  std::int32_t top_k = 40;                              // 0: all
  float top_p = 0.95f;                                  // 0 < p <= 1
  float min_p = 0.05f;                                  // 0 <= p <= 1, relative to the best candidate
  float repetition_penalty = 1.0f;                      // > 0
  float frequency_penalty = 0.0f;                       // -2 .. 2
  float presence_penalty = 0.0f;                        // -2 .. 2
  std::vector<std::pair<TokenId, float>> logit_bias{};  // added to the raw logit; -100 and below bans the token
  std::uint64_t seed = 0;

  // The first field that is out of range, by name and value. The C++ API and every server use this one check.
  Result<void> validate(std::int64_t vocabulary) const;
  static SamplingParams greedy();
};

// Belongs to the session; a step carries it shared and unchanged; the session accepts the token on commit.
struct SamplerState {
  std::unordered_map<TokenId, std::int32_t> in_prompt;  // empty while repetition_penalty is 1
  std::unordered_map<TokenId, std::int32_t> in_answer;
};

}  // namespace troupe
