// TokenWindow: which tokens of a history the model sees when the history grows past what it may hold.
//
// The first `sinks` tokens stay (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks": a model
// leans on them), and behind them the newest ones. When `tokens` are reached, the older half of what is behind the
// sinks is dropped; the rest moves up and is computed again at its new positions. So positions never leave the window,
// and what the model says is, bit for bit, what it would say to a new session with the seen tokens; drawn tokens too,
// since a draw depends on the seed and the position in what is seen.
//
// What is dropped depends on the length of the history alone, not on how it grew: nothing is stored, and a session
// that is forked, saved, moved or cut sees the same tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/token.h"

namespace troupe {

struct TokenWindow {
  std::int64_t tokens = 0;  // that the model sees at most; 0: all of the history, which ends with the context
  std::int64_t sinks = 4;

  static constexpr std::int64_t kFewest = 16;

  bool endless() const { return tokens > 0; }
  // Tokens dropped behind the sinks of a history of `length` tokens.
  std::int64_t dropped(std::int64_t length) const {
    if (!endless() || length < tokens) return 0;
    const std::int64_t half = (tokens - sinks + 1) / 2;
    return half * (1 + (length - tokens) / half);
  }
  // Tokens that are seen of such a history: always fewer than `tokens`.
  std::int64_t seen(std::int64_t length) const { return length - dropped(length); }
  // How many of the first `length` tokens of a history are seen where `gone` were dropped of it.
  std::int64_t seen_before(std::int64_t length, std::int64_t gone) const {
    return length <= sinks ? length : std::max(sinks, length - gone);
  }

  // The seen tokens of a history, from the `from`th on.
  std::vector<TokenId> visible(std::span<const TokenId> history, std::int64_t from) const {
    const auto length = std::ssize(history), first = std::min(from, length), head = std::min(sinks, length);
    const auto gone = dropped(length), rest = std::max(first, head) + gone;
    std::vector<TokenId> seen_tokens;
    if (first < head) seen_tokens.assign(history.begin() + first, history.begin() + head);
    seen_tokens.insert(seen_tokens.end(), history.begin() + rest, history.end());
    return seen_tokens;
  }

  Result<void> validate(std::int64_t context) const {
    if (tokens == 0) return {};
    if (tokens >= kFewest && tokens <= context && sinks >= 0 && sinks <= tokens / 2) return {};
    return Error{ErrorCode::bad_input, "a window of " + std::to_string(tokens) + " tokens with " +
                                           std::to_string(sinks) + " sinks: it must have " + std::to_string(kFewest) +
                                           " to " + std::to_string(context) + " tokens, half of them sinks at most"};
  }
};

}  // namespace troupe
