#include "runtime/prompt_lookup.h"

#include <algorithm>

namespace troupe {
namespace {

// How many of the last tokens of `history` also stand before its token `end`, up to `most`.
std::int64_t match_before(std::span<const TokenId> history, std::int64_t end, std::int64_t most) {
  std::int64_t matched = 0;
  const TokenId* last = history.data() + history.size();
  const TokenId* here = history.data() + end;
  while (matched < std::min(most, end) && here[-1 - matched] == last[-1 - matched]) ++matched;
  return matched;
}

}  // namespace

// The longest match, and of those the newest.
std::span<const TokenId> PromptLookup::guess(std::span<const TokenId> history, std::int64_t most) {
  guess_.clear();
  const auto length = std::ssize(history);
  std::int64_t best = 0, follows = 0;
  for (std::int64_t end = length - 1; end >= kShortest && end >= length - kReach && best < kLongest; --end) {
    const std::int64_t matched = match_before(history, end, kLongest);
    if (matched > best) best = matched, follows = end;
  }
  if (best < kShortest || most < 1) return {};
  matched_ = best;
  const auto guessed = history.subspan(static_cast<std::size_t>(follows));
  guess_.assign(guessed.begin(), guessed.begin() + std::min(most, std::ssize(guessed)));
  return guess_;
}

// Before anything is known as good as even: it is tried.
float PromptLookup::odds() const {
  return odds_[static_cast<std::size_t>(matched_ - kShortest)].of(0.5f);
}

void PromptLookup::learn(TokenId first, std::span<const Sampled> after) {
  GuessOdds& odds = odds_[static_cast<std::size_t>(matched_ - kShortest)];
  TokenId token = first;
  for (std::size_t nth = 0; nth < guess_.size() && nth <= after.size(); ++nth) {
    if (nth > 0) token = after[nth - 1].token;
    odds.count(token == guess_[nth]);
    if (token != guess_[nth]) break;
  }
  guess_.clear();
}

}  // namespace troupe
