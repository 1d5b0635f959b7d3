// Dry: "don't repeat yourself" (p-e-w, text-generation-webui pull request 5677): which tokens would prolong a
// repetition, and by how much their logits fall.
//
// A token that once followed the same last n tokens, n >= allowed_length, falls by multiplier * base^(n -
// allowed_length); of several places the longest counts. A repetition reaches across no breaker and counts no further
// than kLongest tokens.
#pragma once

#include <span>
#include <vector>

#include "kernels/backend.h"
#include "runtime/sampling_params.h"

namespace troupe {

class Dry {
 public:
  static constexpr std::int32_t kLongest = 50;

  // (penalty, token) of each token that falls, ascending ids; valid until the next call. Only with a multiplier.
  std::span<const Candidate> penalties(const SamplingParams& params, const SamplerState& state);

 private:
  struct Repeat {
    TokenId next;
    std::int32_t length;
  };
  std::vector<Repeat> repeats_;
  std::vector<Candidate> penalties_;
};

}  // namespace troupe
