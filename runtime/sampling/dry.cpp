#include "runtime/sampling/dry.h"

#include <algorithm>

namespace troupe {
namespace {

// How many tokens that end at `place` are those that the history ends with; they are equal at `place` itself.
std::int32_t repeated(const SamplerState& state, std::size_t place) {
  const std::size_t last = state.history.size() - 1;
  std::size_t length = 1;
  while (length < static_cast<std::size_t>(Dry::kLongest) && length <= place) {
    const std::size_t then = place - length, now = last - length;
    if (state.history[then] != state.history[now] || state.breaks[then] || state.breaks[now]) break;
    ++length;
  }
  return static_cast<std::int32_t>(length);
}

float penalty_of(const SamplingParams& params, std::int32_t length) {
  float power = 1.0f;
  for (std::int32_t i = params.dry_allowed_length; i < length; ++i) power = power * params.dry_base;
  return params.dry_multiplier * power;
}

}  // namespace

std::span<const Candidate> Dry::penalties(const SamplingParams& params, const SamplerState& state) {
  repeats_.clear();
  penalties_.clear();
  if (state.history.empty() || state.breaks.back()) return penalties_;
  const TokenId last = state.history.back();
  for (std::size_t i = 0; i + 1 < state.history.size(); ++i) {
    if (state.history[i] != last || state.breaks[i] || state.breaks[i + 1]) continue;
    const std::int32_t length = repeated(state, i);
    if (length >= params.dry_allowed_length) repeats_.push_back({state.history[i + 1], length});
  }
  std::ranges::sort(repeats_, [](const Repeat& a, const Repeat& b) {
    return a.next < b.next || (a.next == b.next && a.length > b.length);
  });
  for (const Repeat& repeat : repeats_) {
    if (!penalties_.empty() && penalties_.back().id == repeat.next) continue;
    penalties_.push_back({penalty_of(params, repeat.length), repeat.next});
  }
  return penalties_;
}

}  // namespace troupe
