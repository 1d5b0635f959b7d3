// Choice: from the candidates of one row to a token: temperature, the cuts in their order, the draw.
//
//     const TokenId token = choice.choose(candidates, params, position, mu);
//
// The arithmetic is docs/numerics.md, section 5; what each rule means is docs/sampling.md. A rule at its neutral value
// costs one comparison. Scratch is kept between rows. Candidates come sorted, the best first and above -infinity, and
// are rearranged; the temperature is not 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "runtime/sampling_params.h"

namespace troupe {

class Choice {
 public:
  // `mu`: SamplerState::mirostat_mu, when Mirostat is on.
  TokenId choose(std::span<Candidate> candidates, const SamplingParams& params, std::int64_t position, float mu);

  // Of the last choice: who could have been drawn, and with Mirostat the token's surprise in bits, before any cut.
  std::span<const Candidate> left() const { return candidates_; }
  float surprise() const { return surprise_; }

 private:
  void weigh(float temperature);
  float dynamic_temperature(const SamplingParams& params);
  void cut(const SamplingParams& params, std::int64_t position);
  void typical_p(float p);
  void top_p(float p);
  void min_p(float p);
  void exclude_top(float threshold);
  void cut_surprising(float mu);
  std::size_t draw(const SamplingParams& params, std::int64_t position) const;

  float exponent(const Candidate& candidate) const;
  float total() const;
  float mean_exponent() const;
  float surprise_of(std::size_t place) const;
  void keep(std::size_t first, std::size_t count);

  std::span<Candidate> candidates_;  // that are left
  std::span<float> weights_;         // theirs: exp(l / T - best / T)
  float temperature_ = 1.0f;
  float best_ = 0.0f;         // the best candidate's logit
  float best_scaled_ = 0.0f;  // best_ / temperature_
  float log_total_ = 0.0f;    // of all weights, before Mirostat's cut
  float surprise_ = 0.0f;
  std::vector<float> memory_;
  std::vector<Candidate> order_;  // typical-p: (distance from the entropy, place)
};

}  // namespace troupe
