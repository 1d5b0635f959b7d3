// PromptLookup: guesses what an answer will say from what its history said before (Saxena 2023, "Prompt Lookup
// Decoding"). Where the history's last tokens stood earlier, what followed them there is the guess. It costs no second
// model; answers that quote their prompt, code and lists are guessed well, prose is not.
//
// It also learns how often its guesses are right, by the length of what matched, from every token that comes: whether a
// guess was computed or only made. So it notices when guesses begin to pay again though none is computed.
// What it guesses never changes a token (runtime/batch.h). Plain data, one a session.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/guess_odds.h"
#include "runtime/sampler.h"
#include "runtime/text/token.h"

namespace troupe {

class PromptLookup {
 public:
  static constexpr std::int64_t kShortest = 2, kLongest = 5;  // tokens that match
  static constexpr std::int64_t kReach = 16'384;              // how far back it looks: at most some 10 microseconds

  // At most `most` tokens that may follow `history`, valid until the next call; none where its end is new.
  std::span<const TokenId> guess(std::span<const TokenId> history, std::int64_t most);
  // That a token of the last guess is right when those before it were.
  float odds() const;
  // What followed that history, whoever guessed it: `first`, and then `after`.
  void learn(TokenId first, std::span<const Sampled> after);

 private:
  std::vector<TokenId> guess_;
  std::int64_t matched_ = kShortest;
  std::array<GuessOdds, kLongest - kShortest + 1> odds_{};  // by matched_
};

}  // namespace troupe
