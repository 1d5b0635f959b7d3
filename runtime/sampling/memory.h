// The memory of a turn's choices: made with its prompt, and one token older with every token that is accepted.
//
// The session owns it. A step carries it shared and unchanged, so a step that is sent again gives the same token.
#pragma once

#include <memory>
#include <span>

#include "runtime/sampler.h"
#include "runtime/sampling_params.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

// What a turn asks of its sampler beside the parameters.
struct TurnRules {
  LogitsProcessor processor{};
  std::string heal{};  // what the answer has to begin with; empty: anything
};

// What is known before the first token; null when neither `params` nor `rules` need any of it.
std::shared_ptr<SamplerState> first_memory(const SamplingParams& params, std::span<const TokenId> prompt,
                                           const Vocabulary& vocabulary, const TurnRules& rules = {});

// `sampled` joins what `state` remembers. Copies the state only if a step still reads it.
std::shared_ptr<SamplerState> accepted(std::shared_ptr<SamplerState> state, const SamplingParams& params,
                                       const Sampled& sampled, const Vocabulary& vocabulary);

}  // namespace troupe
