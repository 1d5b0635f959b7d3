// Perplexity: how well a model predicts a text. exp(-mean log p(token | what stands before it in its window)).
//
// The tokens are cut into windows that each begin with an empty cache at position 0; a window's first token has nothing
// before it and is not scored. Every other token is. (Programs that score only the second half of each window, or that
// put a begin token before it, get other figures for the same model.)
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/result.h"
#include "runtime/engine.h"

namespace troupe {

struct Perplexity {
  double value = 0.0;
  double mean_nll = 0.0;           // nats a token
  std::vector<float> logprobs;     // of every scored token, in order; natural logarithms
  std::vector<TokenId> likeliest;  // the most probable token at each of those places
};

struct PerplexityOptions {
  std::int64_t window = 512;  // tokens; 0: one window of all tokens
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

// Refuses fewer than two tokens, and a window over the engine's context.
Result<Perplexity> perplexity(Engine& engine, std::span<const TokenId> tokens, const PerplexityOptions& options);

}  // namespace troupe
