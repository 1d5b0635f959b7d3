#include "runtime/draws.h"

#include <utility>

#include "runtime/sampling/memory.h"

namespace troupe {

Draws::Draws(Backend& backend, std::shared_ptr<const Vocabulary> vocabulary, std::int64_t max_rows)
    : vocabulary_(std::move(vocabulary)), sampler_(backend, vocabulary_->size()) {
  draws_.reserve(static_cast<std::size_t>(max_rows));
  requests_.reserve(static_cast<std::size_t>(max_rows));
}

Sampled& Draws::Draw::out() const {
  return nth == 0 ? rows.slice->sampled : rows.slice->after[static_cast<std::size_t>(nth - 1)];
}

std::size_t Draws::run(std::span<const DrawRows> rows) {
  std::size_t chosen = 0;
  draws_.clear();
  for (const DrawRows& one : rows) draws_.push_back({one});
  while (!draws_.empty()) {
    requests_.clear();
    for (const Draw& draw : draws_) requests_.push_back(request(draw));
    sampler_.run(requests_);
    chosen += requests_.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < draws_.size(); ++i) {
      if (!goes_on(draws_[i], requests_[i])) continue;
      if (kept != i) draws_[kept] = std::move(draws_[i]);
      ++kept;
    }
    draws_.resize(kept);
  }
  return chosen;
}

SampleRequest Draws::request(const Draw& draw) const {
  const Slice& slice = *draw.rows.slice;
  const auto banned = draw.nth < slice.no_end_for ? vocabulary_->end_tokens() : std::span<const TokenId>();
  const std::int64_t position = slice.position + std::ssize(slice.tokens) - slice.drafts + draw.nth;
  return {draw.rows.logits + draw.nth * vocabulary_->size(),
          slice.sampling,
          draw.state ? draw.state.get() : slice.state,
          banned,
          position,
          slice.logprobs,
          &draw.out()};
}

// Whether the guess of the token that was chosen is right, so that the next row counts. Where a token behind a guess
// cannot be chosen, the step that comes there will say so.
bool Draws::goes_on(Draw& draw, const SampleRequest& request) const {
  Slice& slice = *draw.rows.slice;
  if (request.impossible) {
    if (draw.nth > 0) return false;
    slice.failed = true;
    slice.failure = request.failure.empty() ? "no token can be chosen: every token is banned, or no logit is finite"
                                            : request.failure;
    return false;
  }
  slice.right = draw.nth;
  if (draw.nth == draw.rows.guesses) return false;
  const Sampled& sampled = draw.out();
  const auto guess = slice.tokens[slice.tokens.size() - static_cast<std::size_t>(slice.drafts - draw.nth)];
  if (sampled.token != guess) return false;
  if (slice.state != nullptr) {
    if (!draw.state) draw.state = std::make_shared<SamplerState>(*slice.state);
    draw.state = accepted(std::move(draw.state), *slice.sampling, sampled, *vocabulary_);
  }
  ++draw.nth;
  return true;
}

}  // namespace troupe
