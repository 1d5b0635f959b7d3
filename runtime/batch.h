// A batch is the slices that one launch computes. A slice is a run of consecutive tokens of one sequence.
//
// The caller fills the upper half of every Slice; Engine::run fills the lower half. Slices of one batch belong to
// different sequences (two slices of one sequence in a launch would be a mistake; checked).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/kv/kv_cache.h"
#include "runtime/sampler.h"

namespace troupe {

struct Slice {
  const KvLease* cache = nullptr;
  std::int64_t position = 0;          // tokens of the sequence that stand before the first one here
  std::span<const TokenId> tokens{};  // at least one
  bool wants_token = false;           // sample after the last token
  const SamplingParams* sampling = nullptr;
  const SamplerState* state = nullptr;
  bool ban_end = false;        // no end token may be chosen (min_tokens, ignore_eos)
  std::int32_t logprobs = -1;  // as in SampleRequest
  std::span<float> logits{};   // empty, or [tokens][vocabulary]: the raw logits of every token are copied here

  Sampled sampled{};      // when wants_token
  bool failed = false;    // this slice's data broke it (non-finite values, no candidate left)
  std::string failure{};  // a sentence, when failed
};

}  // namespace troupe
