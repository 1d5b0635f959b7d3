// A batch is the slices that one launch computes. A slice is a run of consecutive tokens of one sequence.
//
// The caller fills the upper half of every Slice; Engine::run fills the lower half. Slices of one batch belong to
// different sequences (two slices of one sequence in a launch would be a mistake; checked).
//
// Guesses (speculative decoding; Leviathan, Kalman and Matias 2023): behind the tokens that are known a slice may carry
// drafts, guesses of what will be chosen next. Their rows are computed in the same launch; then tokens are chosen one
// after another as long as the guess of the last one was right. A guess is right when it is the very token that is
// chosen at its position, so what is chosen is what it would have been without guesses, at any temperature.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/kv/kv_cache.h"
#include "runtime/sampler.h"

namespace troupe {

using SessionId = std::uint64_t;

struct Slice {
  SessionId session = 0;  // whose: told in a record, of no meaning to the engine
  const KvLease* cache = nullptr;
  std::int64_t position = 0;          // tokens of the sequence that stand before the first one here
  std::span<const TokenId> tokens{};  // at least one
  bool wants_token = false;           // sample after the last token
  const SamplingParams* sampling = nullptr;
  const SamplerState* state = nullptr;
  std::int32_t no_end_for = 0;  // so many of the next tokens may not be end tokens (min_tokens, ignore_eos)
  std::int32_t logprobs = -1;   // as in SampleRequest
  std::int32_t drafts = 0;      // the last so many of `tokens` are guesses; only of a slice that wants a token
  std::span<Sampled> after{};   // [drafts]: room for the tokens that follow right guesses
  std::span<float> logits{};    // empty, or [tokens][vocabulary]: the raw logits of every token are copied here

  Sampled sampled{};       // when wants_token: the token after those that are known
  std::int32_t right = 0;  // guesses that were right: so many of `after` are tokens of the sequence
  bool failed = false;     // this slice's data broke it (non-finite values, no candidate left)
  std::string failure{};   // a sentence, when failed
};

}  // namespace troupe
