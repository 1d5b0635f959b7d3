#include "runtime/record/believable.h"

#include <algorithm>
#include <string>

#include "runtime/key_weights.h"

namespace troupe {
namespace {

constexpr std::int32_t kMostCount = 1 << 30;  // of one token in a history
constexpr std::int32_t kMostLogprobs = 1024;  // a turn may ask for 20
constexpr std::chrono::hours kLongest{24 * 365 * 100};

Error cannot_be(const std::string& what) {
  return {ErrorCode::bad_input, "the record says what cannot be: " + what};
}

bool all_tokens(std::span<const TokenId> tokens, std::int64_t vocabulary) {
  return std::ranges::all_of(tokens, [&](TokenId token) { return token >= 0 && token < vocabulary; });
}

bool all_counts(const std::unordered_map<TokenId, std::int32_t>& counts, std::int64_t vocabulary) {
  return std::ranges::all_of(counts, [&](const auto& entry) {
    return entry.first >= 0 && entry.first < vocabulary && entry.second >= 0 && entry.second < kMostCount;
  });
}

Result<void> believable_state(const SamplerState& state, std::int64_t vocabulary) {
  const bool tokens = all_counts(state.in_prompt, vocabulary) && all_counts(state.in_answer, vocabulary) &&
                      all_tokens(state.history, vocabulary) &&
                      (!state.spelling || all_tokens(*state.spelling, vocabulary));
  if (!tokens) return cannot_be("a sampler remembers a token that the model has not");
  if (state.history.size() != state.breaks.size()) return cannot_be("a sampler's history has no end");
  return {};
}

Result<void> believable_origin(const StepOrigin& origin, std::int64_t position, std::int64_t vocabulary) {
  if (std::ssize(origin.past) != position || !all_tokens(origin.past, vocabulary)) {
    return cannot_be("what stands before a step is not what it says");
  }
  if (auto checked = origin.sampling.validate(vocabulary); !checked) return cannot_be(checked.error().message);
  return origin.state ? believable_state(*origin.state, vocabulary) : Result<void>();
}

Result<void> believable_outcome(const SliceOutcome& outcome, const RecordedSlice& slice, std::int64_t vocabulary) {
  const bool answers = outcome.failure ? !outcome.sampled : outcome.sampled.has_value() == slice.wants_token;
  const bool guessed = outcome.after.empty() || (outcome.sampled && std::ssize(outcome.after) <= slice.drafts);
  if (!answers || !guessed) return cannot_be("an outcome that is none of its slice");
  std::vector<TokenId> tokens;
  if (outcome.sampled) tokens.push_back(outcome.sampled->token);
  for (const Sampled& sampled : outcome.after) tokens.push_back(sampled.token);
  return all_tokens(tokens, vocabulary) ? Result<void>() : cannot_be("an answer that the model has not");
}

}  // namespace

Result<void> believable(const BatcherBegan& began, const BelievableWithin& engine) {
  if (began.max_rows < 1 || began.max_rows > engine.max_rows) {
    return cannot_be("launches of " + std::to_string(began.max_rows) + " rows");
  }
  if (began.linger.count() < 0 || began.linger > kLongest) return cannot_be("a linger without end");
  if (auto weights = KeyWeights::of(began.weights); !weights) return cannot_be(weights.error().message);
  return {};
}

Result<void> believable(const StepArrived& step, const BelievableWithin& engine) {
  const std::int64_t room = engine.context - step.position;
  if (step.position < 0 || step.tokens.empty() || std::ssize(step.tokens) > room) {
    return cannot_be("a step of " + std::to_string(step.tokens.size()) + " tokens at position " +
                     std::to_string(step.position));
  }
  if (!all_tokens(step.tokens, engine.vocabulary)) return cannot_be("a step has a token that the model has not");
  if (step.logprobs < -1 || step.logprobs > std::min<std::int64_t>(kMostLogprobs, engine.vocabulary)) {
    return cannot_be("a step asks for " + std::to_string(step.logprobs) + " log-probabilities");
  }
  const bool guesses = step.drafts > 0 && step.drafts == std::ssize(step.tokens) - 1;
  if ((step.drafts != 0 && !guesses) || !(step.draft_odds >= 0.0f && step.draft_odds <= 1.0f)) {
    return cannot_be("a step guesses " + std::to_string(step.drafts) + " tokens of " +
                     std::to_string(step.tokens.size()));
  }
  return step.origin ? believable_origin(*step.origin, step.position, engine.vocabulary) : Result<void>();
}

Result<void> believable(const StepGuessed& guessed, const BelievableWithin& engine) {
  if (!all_tokens(guessed.tokens, engine.vocabulary)) return cannot_be("a guess that the model has not");
  if (!(guessed.odds >= 0.0f && guessed.odds <= 1.0f)) return cannot_be("a guess with odds that there are not");
  return {};
}

Result<void> believable(TimePoint clock) {
  const auto since = clock.time_since_epoch();
  if (since < -kLongest || since > kLongest) return cannot_be("a clock that is a hundred years off");
  return {};
}

Result<void> believable(const LaunchEnded& ended, const std::vector<RecordedSlice>& slices,
                        const BelievableWithin& engine) {
  if (!(ended.took >= Seconds(0) && ended.took <= kLongest)) return cannot_be("a launch that took no time there is");
  if (ended.outcomes.size() != slices.size()) return cannot_be("a launch has other outcomes than slices");
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (auto checked = believable_outcome(ended.outcomes[i], slices[i], engine.vocabulary); !checked) return checked;
  }
  return believable(ended.now);
}

}  // namespace troupe
