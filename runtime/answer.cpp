#include "runtime/answer.h"

#include <algorithm>
#include <limits>

namespace troupe {

Result<void> TurnLimits::validate(std::int64_t vocabulary) const {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::bad_input, what}; };
  if (max_tokens < 0) return wrong("max_tokens is " + std::to_string(max_tokens) + "; it must be 0 (no limit) or more");
  if (min_tokens < 0) return wrong("min_tokens is " + std::to_string(min_tokens) + "; it must be 0 or more");
  if (stop.size() > kMaxStops) {
    return wrong(std::to_string(stop.size()) + " stop strings; at most " + std::to_string(kMaxStops) + " are possible");
  }
  for (const std::string& text : stop) {
    if (text.empty() || text.size() > kMaxStopBytes) {
      return wrong("a stop string of " + std::to_string(text.size()) + " bytes; 1 to " + std::to_string(kMaxStopBytes) +
                   " are possible");
    }
  }
  for (TokenId token : end_tokens) {
    if (token < 0 || token >= vocabulary)
      return wrong("end token " + std::to_string(token) + " is outside the vocabulary");
  }
  return {};
}

const char* name(FinishReason reason) {
  switch (reason) {
    case FinishReason::none:
      return "none";
    case FinishReason::end_token:
    case FinishReason::stop_string:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "none";
}

Answer::Answer(std::shared_ptr<const Vocabulary> vocabulary, const TurnLimits& limits)
    : vocabulary_(std::move(vocabulary)), limits_(limits), stops_(limits.stop) {}

bool Answer::is_end(TokenId token) const {
  return vocabulary_->ends_answer(token) || std::ranges::find(limits_.end_tokens, token) != limits_.end_tokens.end();
}

std::int32_t Answer::no_end_for(std::int64_t said) const {
  if (limits_.ignore_eos) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::max<std::int64_t>(limits_.min_tokens - said, 0));
}

bool Answer::ends_with(TokenId token) const {
  const bool full = limits_.max_tokens > 0 && static_cast<std::int64_t>(tokens_.size()) + 1 >= limits_.max_tokens;
  return full || is_end(token);
}

std::string Answer::accept(TokenId token) {
  const bool last = ends_with(token);
  tokens_.push_back(token);
  keep_ = tokens_.size();
  if (is_end(token)) return end(FinishReason::end_token);
  if (!vocabulary_->is_control(token)) bytes_ += vocabulary_->bytes(token);
  ends_.push_back(bytes_.size());
  const std::string_view fresh = past_prompt(ends_.size() > 1 ? ends_[ends_.size() - 2] : 0);
  std::string text = utf8_.push(stops_.push(fresh));
  if (stops_.match()) {
    cut_at_stop(healed_.size() + *stops_.match());
    reason_ = FinishReason::stop_string;
    text += utf8_.flush();
  }
  text_ += text;
  if (last && reason_ == FinishReason::none) text += end(FinishReason::length);
  return text;
}

std::string Answer::end(FinishReason reason) {
  reason_ = reason;
  std::string text = utf8_.push(stops_.flush()) + utf8_.flush();
  text_ += text;
  // What was not spelled again when the answer ended is the prompt's all the same.
  if (bytes_.size() < healed_.size()) leftover_ = healed_.substr(bytes_.size());
  return text;
}

// The bytes from `from` on, without those that spell the healed end of the prompt.
std::string_view Answer::past_prompt(std::size_t from) const {
  return std::string_view(bytes_).substr(std::min(bytes_.size(), std::max(from, healed_.size())));
}

void Answer::cut_at_stop(std::size_t match) {
  keep_ = 0;
  while (keep_ < ends_.size() && ends_[keep_] <= match) ++keep_;
  const std::size_t kept = keep_ == 0 ? 0 : ends_[keep_ - 1];
  leftover_ = bytes_.substr(kept, match - kept);
}

}  // namespace troupe
