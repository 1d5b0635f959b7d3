#include "runtime/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe {
namespace {

constexpr std::int64_t kRows = 64;  // of one launch: 12 MB of logits at 49,152 tokens

// Natural log of the probability of `token`, summed in double.
double logprob(std::span<const float> logits, TokenId token) {
  const double best = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - best - std::log(sum);
}

class Scorer {
 public:
  Scorer(Engine& engine, Perplexity& out)
      : engine_(engine),
        vocabulary_(static_cast<std::size_t>(engine.shape().vocabulary)),
        rows_(std::min(kRows, engine.max_rows())),
        logits_(static_cast<std::size_t>(rows_) * vocabulary_),
        out_(out) {}

  Result<void> score(std::span<const TokenId> window) {
    KvCache cache(engine_.pages());
    const auto size = static_cast<std::int64_t>(window.size());
    if (!cache.reserve(size)) {
      return Error{ErrorCode::out_of_memory, "a window of " + std::to_string(size) + " tokens needs " +
                                                 std::to_string(pages_for(size)) + " KV pages; " +
                                                 std::to_string(engine_.pages()->free()) + " are free"};
    }
    for (std::int64_t at = 0; at < size; at += rows_) {
      if (auto ran = launch(cache, window, at, std::min(rows_, size - at)); !ran) return ran;
    }
    return {};
  }

 private:
  Result<void> launch(KvCache& cache, std::span<const TokenId> window, std::int64_t at, std::int64_t rows) {
    const auto begin = static_cast<std::size_t>(at), count = static_cast<std::size_t>(rows);
    const KvLease lease = cache.lend();
    Slice slice{.cache = &lease,
                .position = at,
                .tokens = window.subspan(begin, count),
                .logits = std::span(logits_).first(count * vocabulary_)};
    engine_.run({&slice, 1});
    if (slice.failed) return Error{ErrorCode::step_failed, slice.failure};
    cache.commit(at + rows);
    for (std::size_t i = 0; i < count && begin + i + 1 < window.size(); ++i) {
      const std::span<const float> row = std::span<const float>(logits_).subspan(i * vocabulary_, vocabulary_);
      out_.logprobs.push_back(static_cast<float>(logprob(row, window[begin + i + 1])));
      out_.likeliest.push_back(static_cast<TokenId>(std::ranges::max_element(row) - row.begin()));
    }
    return {};
  }

  Engine& engine_;
  std::size_t vocabulary_;
  std::int64_t rows_;
  std::vector<float> logits_;  // [rows_][vocabulary_]
  Perplexity& out_;
};

}  // namespace

Result<Perplexity> perplexity(Engine& engine, std::span<const TokenId> tokens, const PerplexityOptions& options) {
  const auto total = static_cast<std::int64_t>(tokens.size());
  const std::int64_t window = options.window > 0 ? options.window : total;
  if (total < 2)
    return Error{ErrorCode::bad_input,
                 "the text has " + std::to_string(total) + " tokens; perplexity needs at least 2"};
  if (window < 2 || std::min(window, total) > engine.context()) {
    return Error{ErrorCode::context_length, "the window is " + std::to_string(window) +
                                                " tokens; 2 to the context of " + std::to_string(engine.context()) +
                                                " are possible"};
  }
  Perplexity result;
  Scorer scorer(engine, result);
  for (std::int64_t at = 0; at < total; at += window) {
    const std::int64_t size = std::min(window, total - at);
    if (auto scored = scorer.score(tokens.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size)));
        !scored)
      return scored.error();
    if (options.progress) options.progress(at + size, total);
  }
  for (float one : result.logprobs) result.mean_nll -= one;
  result.mean_nll /= static_cast<double>(result.logprobs.size());
  result.value = std::exp(result.mean_nll);
  return result;
}

}  // namespace troupe
