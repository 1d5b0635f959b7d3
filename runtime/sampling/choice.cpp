#include "runtime/sampling/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math.h"
#include "kernels/random.h"

namespace troupe {
namespace {

constexpr float kBitsPerNat = 1.44269504f;  // log2(e)

// x^exponent of an x in [0, 1]; what is too small for log_contract counts as 0.
float power(float x, float exponent) {
  if (exponent == 1.0f) return x;
  if (exponent == 0.0f) return 1.0f;
  return x < std::numeric_limits<float>::min() ? 0.0f : exp_contract(exponent * log_contract(x));
}

}  // namespace

TokenId Choice::choose(std::span<Candidate> candidates, const SamplingParams& params, std::int64_t position, float mu) {
  memory_.resize(std::max(memory_.size(), candidates.size()));
  candidates_ = candidates;
  best_ = candidates[0].logit;
  weigh(params.dynatemp_range > 0.0f ? dynamic_temperature(params) : params.temperature);
  surprise_ = 0.0f;
  if (params.mirostat == 0) {
    cut(params, position);
    return candidates_[draw(params, position)].id;
  }
  cut_surprising(mu);
  const std::size_t drawn = draw(params, position);
  surprise_ = surprise_of(drawn);
  return candidates_[drawn].id;
}

// log(weight). Equal logits are equally likely at every temperature, at one whose quotients are infinite too.
float Choice::exponent(const Candidate& candidate) const {
  return candidate.logit == best_ ? 0.0f : candidate.logit / temperature_ - best_scaled_;
}

// A weight of 0 adds nothing to any sum, and neither does any that follows: the candidates are sorted.
void Choice::weigh(float temperature) {
  temperature_ = temperature;
  best_scaled_ = best_ / temperature;
  std::size_t count = 0;
  for (; count < candidates_.size(); ++count) {
    const float weight = exp_contract(exponent(candidates_[count]));
    if (!(weight > 0.0f)) break;
    memory_[count] = weight;
  }
  candidates_ = candidates_.first(count);
  weights_ = std::span(memory_).first(count);
}

float Choice::total() const {
  float sum = 0.0f;
  for (float weight : weights_) sum += weight;
  return sum;
}

// log(total) less this is the entropy; this less a candidate's exponent is how much more surprising than that it is.
float Choice::mean_exponent() const {
  float sum = 0.0f;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * exponent(candidates_[i]);
  return sum / total();
}

float Choice::dynamic_temperature(const SamplingParams& params) {
  const std::span<Candidate> all = candidates_;
  if (all.size() == 1) return params.temperature;
  weigh(1.0f);
  const float entropy = log_contract(total()) - mean_exponent();
  const float share = std::clamp(entropy / log_contract(static_cast<float>(all.size())), 0.0f, 1.0f);
  candidates_ = all;
  const float lowest = std::max(0.0f, params.temperature - params.dynatemp_range);
  const float highest = params.temperature + params.dynatemp_range;
  return lowest + (highest - lowest) * power(share, params.dynatemp_exponent);
}

void Choice::cut(const SamplingParams& params, std::int64_t position) {
  if (params.typical_p < 1.0f) typical_p(params.typical_p);
  if (params.top_p < 1.0f) top_p(params.top_p);
  if (params.min_p > 0.0f) min_p(params.min_p);
  if (params.xtc_probability > 0.0f &&
      uniform(params.seed, static_cast<std::uint32_t>(position), RandomPurpose::xtc) < params.xtc_probability) {
    exclude_top(params.xtc_threshold);
  }
}

void Choice::keep(std::size_t first, std::size_t count) {
  candidates_ = candidates_.subspan(first, count);
  weights_ = weights_.subspan(first, count);
}

// The fewest whose surprise is nearest to the entropy and whose weights sum to at least p; in their old order.
void Choice::typical_p(float p) {
  const float mean = mean_exponent(), wanted = p * total();
  order_.clear();
  for (const Candidate& one : candidates_) {
    order_.push_back({std::fabs(mean - exponent(one)), static_cast<std::int32_t>(order_.size())});
  }
  std::ranges::sort(order_, [](const Candidate& a, const Candidate& b) {
    return a.logit < b.logit || (a.logit == b.logit && a.id < b.id);
  });
  float running = 0.0f;
  std::size_t kept = 0;
  while (kept < order_.size() && (kept == 0 || running < wanted)) {
    running += weights_[static_cast<std::size_t>(order_[kept++].id)];
  }
  order_.resize(kept);
  std::ranges::sort(order_, {}, &Candidate::id);
  for (std::size_t i = 0; i < kept; ++i) {
    candidates_[i] = candidates_[static_cast<std::size_t>(order_[i].id)];
    weights_[i] = weights_[static_cast<std::size_t>(order_[i].id)];
  }
  keep(0, kept);
}

void Choice::top_p(float p) {
  const float wanted = p * total();
  float running = 0.0f;
  std::size_t kept = 0;
  while (kept < weights_.size() && (kept == 0 || running < wanted)) running += weights_[kept++];
  keep(0, kept);
}

void Choice::min_p(float p) {
  const float least = p * weights_[0];
  std::size_t kept = weights_.size();
  while (kept > 1 && weights_[kept - 1] < least) --kept;
  keep(0, kept);
}

// All that reach the threshold go, but for the least likely of them.
void Choice::exclude_top(float threshold) {
  const float least = threshold * total();
  std::size_t reaching = 0;
  while (reaching < weights_.size() && weights_[reaching] >= least) ++reaching;
  if (reaching > 1) keep(reaching - 1, weights_.size() - (reaching - 1));
}

float Choice::surprise_of(std::size_t place) const {
  return (log_total_ - exponent(candidates_[place])) * kBitsPerNat;
}

void Choice::cut_surprising(float mu) {
  log_total_ = log_contract(total());
  std::size_t kept = 1;
  while (kept < weights_.size() && !(surprise_of(kept) > mu)) ++kept;
  keep(0, kept);
}

std::size_t Choice::draw(const SamplingParams& params, std::int64_t position) const {
  const float u = uniform(params.seed, static_cast<std::uint32_t>(position), RandomPurpose::draw) * total();
  float running = 0.0f;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    running += weights_[i];
    if (running > u) return i;
  }
  return weights_.size() - 1;
}

}  // namespace troupe
