// SamplingParams: how one session chooses its next token. SamplerState: what that choice remembers of its past.
//
// The order of the rules, each skipped at its neutral value (docs/sampling.md words each one):
//   the turn's logits processor -> logit bias -> repetition penalty -> frequency and presence penalties -> DRY
//   -> ban of end tokens, and of what does not spell a healed prompt's end
//   -> temperature (dynamic: from the entropy) -> top-k -> typical-p -> top-p -> min-p -> XTC -> draw.
// With Mirostat its own cut stands in the place of top-k, typical-p, top-p, min-p and XTC.
// The candidates that top_k leaves weigh exp(l / T - best / T). top_p keeps the fewest best ones whose weights sum to
// at least p of all of these; min_p then drops those that weigh less than p times the best. One always stays.
// temperature 0 is greedy: the largest logit after bias and penalties, ties to the lower id.
// Repetition penalty counts prompt and answer (Keskar et al. 2019, CTRL: l > 0 ? l / r : l * r); frequency and presence
// penalties count the answer only (as the OpenAI API words them: l - count * frequency - (count > 0) * presence).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/result.h"
#include "runtime/sampling/logits_processor.h"
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

  float dynatemp_range = 0.0f;          // >= 0; 0: the temperature stands
  float dynatemp_exponent = 1.0f;       // >= 0
  float typical_p = 1.0f;               // 0 < p <= 1; 1: all
  float xtc_probability = 0.0f;         // 0 <= p <= 1; 0: never
  float xtc_threshold = 0.1f;           // 0 <= t <= 1; above 0.5 there is never anything to exclude
  float dry_multiplier = 0.0f;          // >= 0; 0: no penalty
  float dry_base = 1.75f;               // >= 1
  std::int32_t dry_allowed_length = 2;  // >= 1 tokens
  std::vector<std::string> dry_sequence_breakers{"\n", ":", "\"", "*"};  // no repetition reaches across one
  std::int32_t mirostat = 0;                                             // 0: off; 2: version 2
  float mirostat_tau = 5.0f;                                             // >= 0 bits: the surprise aimed at
  float mirostat_eta = 0.1f;                                             // >= 0: how fast it gets there

  static constexpr std::size_t kMaxBreakers = 64;
  static constexpr std::size_t kMaxBreakerBytes = 64;

  // The first field that is out of range, by name and value. The C++ API and every server use this one check.
  Result<void> validate(std::int64_t vocabulary) const;
  static SamplingParams greedy();
  bool operator==(const SamplingParams&) const = default;
};

// Belongs to the session; a step carries it shared and unchanged; the session accepts the token on commit
// (runtime/sampling/memory.h).
struct SamplerState {
  std::unordered_map<TokenId, std::int32_t> in_prompt;  // empty while repetition_penalty is 1
  std::unordered_map<TokenId, std::int32_t> in_answer;
  std::vector<TokenId> history;  // prompt and answer; empty while neither DRY nor a processor reads it
  std::vector<bool> breaks;      // of each token of the history: the text of a breaker ends in it
  std::string tail;              // the last bytes of the history's text: a breaker may have begun there
  float mirostat_mu = 0.0f;      // bits of surprise that a token may have
  std::shared_ptr<const LogitsProcessor> processor;  // null: none
  std::string to_spell;  // of a healed prompt: what the answer has to begin with still (runtime/text/healing.h)
  std::shared_ptr<const std::vector<TokenId>> spelling;  // the tokens that may come, ascending; null: all
};

}  // namespace troupe
