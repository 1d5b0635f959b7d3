// Sampling parameters that several tests begin with.
#pragma once

#include "runtime/sampling_params.h"

namespace troupe::test {

// Every token may come.
inline SamplingParams no_cuts(float temperature = 1.0f) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = 0;
  params.top_p = 1.0f;
  params.min_p = 0.0f;
  return params;
}

// No field has its default, and a breaker is no text: what a file or a message must carry.
inline SamplingParams every_rule() {
  return {.temperature = 0.9f,
          .top_k = 7,
          .top_p = 0.8f,
          .min_p = 0.01f,
          .repetition_penalty = 1.1f,
          .frequency_penalty = 0.2f,
          .presence_penalty = 0.3f,
          .logit_bias = {{1, 2.5f}},
          .seed = 11,
          .dynatemp_range = 0.4f,
          .dynatemp_exponent = 1.5f,
          .typical_p = 0.7f,
          .xtc_probability = 0.6f,
          .xtc_threshold = 0.15f,
          .dry_multiplier = 0.8f,
          .dry_base = 1.9f,
          .dry_allowed_length = 3,
          .dry_sequence_breakers = {"\n", "\xff\""},
          .mirostat = 2,
          .mirostat_tau = 4.5f,
          .mirostat_eta = 0.05f};
}

}  // namespace troupe::test
