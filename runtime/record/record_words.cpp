#include "runtime/record/record_words.h"

#include <cstdio>

namespace troupe {
namespace {

// Floats by their bits: what differs in the last place looks different.
std::string words(const Sampled& sampled) {
  char numbers[80];
  std::snprintf(numbers, sizeof numbers, " (log-probability %a, surprise %a)", static_cast<double>(sampled.logprob),
                static_cast<double>(sampled.surprise));
  return "token " + std::to_string(sampled.token) + numbers;
}

}  // namespace

std::string words(const RecordedSlice& slice) {
  return "session " + std::to_string(slice.session) + ", " + std::to_string(slice.rows) + " rows at position " +
         std::to_string(slice.position) + (slice.wants_token ? ", for a token" : "") +
         (slice.drafts > 0 ? ", " + std::to_string(slice.drafts) + " of them guesses" : "");
}

std::string words(const SliceOutcome& outcome) {
  if (outcome.failure) return "the failure '" + *outcome.failure + "'";
  if (!outcome.sampled) return "nothing yet";
  std::string tokens = words(*outcome.sampled);
  for (const Sampled& sampled : outcome.after) tokens += ", " + words(sampled);
  return tokens;
}

}  // namespace troupe
