#include "runtime/sampling/memory.h"

#include <algorithm>
#include <utility>

#include "runtime/sole_owner.h"
#include "runtime/text/healing.h"

namespace troupe {
namespace {

// A breaker breaks where its text ends, whichever tokens it began in.
void remember(SamplerState& state, TokenId token, const std::vector<std::string>& breakers,
              const Vocabulary& vocabulary) {
  const std::size_t before = state.tail.size();
  state.tail += vocabulary.bytes(token);
  std::size_t longest = 1;
  bool ends_here = false;
  for (const std::string& breaker : breakers) {
    longest = std::max(longest, breaker.size());
    const std::size_t from = before - std::min(before, breaker.size() - 1);
    ends_here = ends_here || state.tail.find(breaker, from) != std::string::npos;
  }
  state.history.push_back(token);
  state.breaks.push_back(ends_here);
  state.tail.erase(0, state.tail.size() - std::min(state.tail.size(), longest - 1));
}

bool reads_history(const SamplingParams& params, const SamplerState& state) {
  return params.dry_multiplier > 0.0f || state.processor != nullptr;
}

// One look through the vocabulary, for one token or two of a turn.
void spell(SamplerState& state, std::string rest, const Vocabulary& vocabulary) {
  state.to_spell = std::move(rest);
  state.spelling.reset();
  if (state.to_spell.empty()) return;
  state.spelling = std::make_shared<const std::vector<TokenId>>(healing_tokens(vocabulary, state.to_spell));
}

}  // namespace

std::shared_ptr<SamplerState> first_memory(const SamplingParams& params, std::span<const TokenId> prompt,
                                           const Vocabulary& vocabulary, const TurnRules& rules) {
  const bool repetition = params.repetition_penalty != 1.0f, dry = params.dry_multiplier > 0.0f;
  const bool counts = repetition || params.frequency_penalty != 0.0f || params.presence_penalty != 0.0f;
  if (!counts && !dry && params.mirostat == 0 && !rules.processor && rules.heal.empty()) return nullptr;
  auto state = std::make_shared<SamplerState>();
  state->mirostat_mu = 2.0f * params.mirostat_tau;
  if (rules.processor) state->processor = std::make_shared<const LogitsProcessor>(rules.processor);
  spell(*state, rules.heal, vocabulary);
  const bool keeps_history = reads_history(params, *state);
  for (TokenId token : prompt) {
    if (repetition) ++state->in_prompt[token];
    if (keeps_history) remember(*state, token, params.dry_sequence_breakers, vocabulary);
  }
  return state;
}

std::shared_ptr<SamplerState> accepted(std::shared_ptr<SamplerState> state, const SamplingParams& params,
                                       const Sampled& sampled, const Vocabulary& vocabulary) {
  if (!sole_owner(state)) state = std::make_shared<SamplerState>(*state);
  ++state->in_answer[sampled.token];
  if (reads_history(params, *state)) remember(*state, sampled.token, params.dry_sequence_breakers, vocabulary);
  if (state->spelling) {
    const std::size_t spelled = vocabulary.bytes(sampled.token).size();
    spell(*state, state->to_spell.substr(std::min(state->to_spell.size(), spelled)), vocabulary);
  }
  const float error = sampled.surprise - params.mirostat_tau;
  if (params.mirostat != 0) state->mirostat_mu = state->mirostat_mu - params.mirostat_eta * error;
  return state;
}

}  // namespace troupe
