// The sampler: a pure function from (logits row, parameters, state, seed, position) to a token.
//
// Random numbers come from Philox 4x32-10 keyed by the seed with counter (position, purpose, choice, 0), never from
// stored state, so a token does not depend on what was sampled before or beside it (numerics.md, "Random numbers").
// Log-probabilities are of the raw logits, before any rule.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/sampling/choice.h"
#include "runtime/sampling/dry.h"
#include "runtime/sampling_params.h"

namespace troupe {

struct TokenLogprob {
  TokenId token = -1;
  float logprob = 0.0f;  // natural logarithm
};

struct Sampled {
  TokenId token = -1;
  float logprob = 0.0f;             // of `token`, when asked for
  std::vector<TokenLogprob> top{};  // the most likely tokens, when asked for
  float surprise = 0.0f;            // bits of `token`, with Mirostat: what its memory learns from
};

// One row to sample. `logits` is changed: bias, penalties and bans are applied in place.
struct SampleRequest {
  float* logits = nullptr;  // [vocabulary]
  const SamplingParams* params = nullptr;
  const SamplerState* state = nullptr;  // nullptr: nothing remembered
  std::span<const TokenId> banned;      // end tokens while they are not allowed
  std::int64_t position = 0;            // of the token that is being chosen, in its sequence
  std::int32_t logprobs = -1;           // -1: none; k >= 0: the token's own, and the k most likely
  Sampled* out = nullptr;
  bool impossible = false;  // out: no token was chosen; `out` is untouched
  std::string failure{};    // out: why, when a logits processor threw; else every token was banned
};

// Samples all rows of a launch at once. Scratch is kept between calls.
class Sampler {
 public:
  Sampler(Backend& backend, std::int64_t vocabulary) : backend_(backend), vocabulary_(vocabulary) {}
  void run(std::span<SampleRequest> requests);

 private:
  std::int64_t candidates_wanted(const SamplingParams& params) const;
  void log_probabilities(std::span<SampleRequest> requests);
  void call_processor(SampleRequest& request);
  void apply_rules(const SampleRequest& request);
  void choose(const SampleRequest& request, std::span<Candidate> candidates);
  void find_candidates(std::span<SampleRequest> requests);
  float raw_logit(const SampleRequest& request, std::size_t which) const;

  Backend& backend_;
  std::int64_t vocabulary_;
  std::vector<Candidate> candidates_;
  std::vector<TopRequest> tops_;
  std::vector<LogSumRequest> sums_;
  std::vector<float> log_sums_;
  std::vector<Candidate> likely_;
  std::vector<Candidate> edits_;        // logits as they were before the rules, all requests in order
  std::vector<float> raw_rows_;         // whole rows as they were before a processor, where that will be asked for
  std::vector<std::int64_t> raw_at_;    // where each request's begins; -1: it has none
  std::vector<std::size_t> edits_end_;  // where each request's end
  Dry dry_;
  Choice choice_;
};

}  // namespace troupe
