#include "actors/records.h"

#include <algorithm>

namespace troupe {

const char* name(SessionPhase phase) {
  switch (phase) {
    case SessionPhase::idle:
      return "idle";
    case SessionPhase::planning:
      return "planning";
    case SessionPhase::queued:
      return "queued";
    case SessionPhase::prefilling:
      return "prefilling";
    case SessionPhase::decoding:
      return "decoding";
    case SessionPhase::parked:
      return "parked";
  }
  return "idle";
}

PhaseTimes::Time& PhaseTimes::of(SessionPhase phase) {
  switch (phase) {
    case SessionPhase::idle:
      return idle;
    case SessionPhase::planning:
      return planning;
    case SessionPhase::queued:
      return queued;
    case SessionPhase::prefilling:
      return prefilling;
    case SessionPhase::decoding:
      return decoding;
    case SessionPhase::parked:
      return parked;
  }
  return idle;
}

Result<void> OpenSession::validate(std::int64_t vocabulary, std::int64_t context) const {
  if (auto checked = sampling.validate(vocabulary); !checked) return checked;
  if (auto checked = window.validate(context); !checked) return checked;
  if (!past) return {};
  if (!system.empty()) return Error{ErrorCode::bad_input, "give a system text or a past, not both"};
  const auto wrong =
      std::ranges::find_if(past->tokens, [&](TokenId token) { return token < 0 || token >= vocabulary; });
  if (wrong == past->tokens.end()) return {};
  return Error{ErrorCode::bad_input,
               "the transcript holds token " + std::to_string(*wrong) + ", outside the vocabulary"};
}

Result<void> Turn::validate(std::int64_t vocabulary, std::int64_t context, std::size_t max_text_bytes) const {
  if (auto checked = limits.validate(vocabulary); !checked) return checked;
  if (sampling) {
    if (auto checked = sampling->validate(vocabulary); !checked) return checked;
  }
  if (logprobs < -1 || logprobs > kMaxLogprobs) {
    return Error{ErrorCode::bad_input,
                 "logprobs is " + std::to_string(logprobs) + "; it must be -1 to " + std::to_string(kMaxLogprobs)};
  }
  if (time_limit.count() <= 0 || time_limit > kLongestLimit) {
    return Error{ErrorCode::bad_input,
                 "the time limit is " + std::to_string(time_limit.count()) + " ms; it must be 1 ms to 30 days"};
  }
  if (heal && kind == Kind::message) {
    return Error{ErrorCode::bad_input, "heal is for turns of text or tokens: a message ends with its template's text"};
  }
  if (credit < 1) return Error{ErrorCode::bad_input, "credit must be at least 1"};
  if (text.size() > max_text_bytes) {
    return Error{ErrorCode::context_length, "the text has " + std::to_string(text.size()) + " bytes; a context of " +
                                                std::to_string(context) + " tokens holds at most " +
                                                std::to_string(max_text_bytes)};
  }
  return {};
}

}  // namespace troupe
