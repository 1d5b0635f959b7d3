// Answer: one turn's answer while it grows: tokens in, text out, and when it ends.
//
// Tokens go in one by one; text comes out as soon as it can no longer change: never half a character, never bytes that
// could still become a stop string. Ends by an end token, a stop string, or max_tokens.
// After the end, keep() says how many of the answer's tokens stay in the history: all, or, when a stop string matched,
// those that end at or before the match. What lies between (leftover()) is part of the answer's text and is tokenized
// again with the next turn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/stop_matcher.h"
#include "runtime/text/token.h"
#include "runtime/text/utf8.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

struct TurnLimits {
  std::int32_t max_tokens = 0;        // 0: until the context is full
  std::int32_t min_tokens = 0;        // no end token before so many
  bool ignore_eos = false;            // end tokens are never chosen
  std::vector<std::string> stop{};    // at most kMaxStops, none empty
  std::vector<TokenId> end_tokens{};  // in addition to the model's own

  static constexpr std::size_t kMaxStops = 16;
  static constexpr std::size_t kMaxStopBytes = 1024;
  Result<void> validate(std::int64_t vocabulary) const;
};

enum class FinishReason : std::uint8_t { none, end_token, stop_string, length, cancelled };
// "stop" for the first two ends (as the OpenAI API has it), "length", "cancelled", "none".
const char* name(FinishReason reason);

class Answer {
 public:
  Answer(std::shared_ptr<const Vocabulary> vocabulary, const TurnLimits& limits);

  // The prompt's healed end, before the first token: the answer's first bytes spell it again and are no text of its
  // own.
  void begins_with(std::string healed) { healed_ = std::move(healed); }

  // The text that this token releases, possibly empty. After an end (reason() != none) nothing may follow.
  std::string accept(TokenId token);
  // The answer ends here for a reason from outside (the context is full, the turn was stopped): releases held text.
  std::string end(FinishReason reason);

  FinishReason reason() const { return reason_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }
  const std::string& text() const { return text_; }  // all that was released
  std::size_t keep() const { return keep_; }
  const std::string& leftover() const { return leftover_; }
  // After so many of the answer's tokens (which may run ahead of those accepted): how many of the next may not end it.
  std::int32_t no_end_for(std::int64_t said) const;
  // The next step may be sent before the last token's text is looked at: no stop string can end the answer.
  bool decided_by_token() const { return limits_.stop.empty(); }
  // Whether `token` would end the answer, by itself or by the limit.
  bool ends_with(TokenId token) const;
  bool is_end(TokenId token) const;

 private:
  void cut_at_stop(std::size_t match);
  std::string_view past_prompt(std::size_t from) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  TurnLimits limits_;
  StopMatcher stops_;
  Utf8Stream utf8_;
  std::vector<TokenId> tokens_;
  std::vector<std::size_t> ends_;  // ends_[i]: size of bytes_ after token i
  std::string healed_;
  std::string bytes_;  // what the tokens stand for, before stop matching; begins with healed_
  std::string text_;
  std::string leftover_;
  std::size_t keep_ = 0;
  FinishReason reason_ = FinishReason::none;
};

}  // namespace troupe
