#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math.h"
#include "kernels/random.h"

namespace troupe {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr float kBanBias = -100.0f;  // a bias this low bans, as the OpenAI API promises

// Changes single logits of a row and remembers what stood there, for the log-probability of the chosen token.
class RowEditor {
 public:
  RowEditor(float* logits, std::vector<Candidate>& before) : logits_(logits), before_(before) {}
  template <class Change>
  void edit(TokenId token, Change&& change) {
    before_.push_back({logits_[token], token});
    logits_[token] = change(logits_[token]);
  }

 private:
  float* logits_;
  std::vector<Candidate>& before_;
};

void apply_penalties(const SamplingParams& params, const SamplerState& state, RowEditor& row) {
  const auto punish = [&](TokenId token) {
    row.edit(token, [&](float l) { return l > 0.0f ? l / params.repetition_penalty : l * params.repetition_penalty; });
  };
  if (params.repetition_penalty != 1.0f) {
    for (const auto& [token, count] : state.in_prompt) punish(token);
    for (const auto& [token, count] : state.in_answer) {
      if (!state.in_prompt.contains(token)) punish(token);
    }
  }
  if (params.frequency_penalty == 0.0f && params.presence_penalty == 0.0f) return;
  for (const auto& [token, count] : state.in_answer) {
    const float times = static_cast<float>(count);
    row.edit(token, [&](float l) { return l - times * params.frequency_penalty - params.presence_penalty; });
  }
}

void apply_rules(const SampleRequest& request, RowEditor& row) {
  for (const auto& [token, bias] : request.params->logit_bias) {
    row.edit(token, [bias = bias](float l) { return bias <= kBanBias ? kBanned : l + bias; });
  }
  if (request.state != nullptr) apply_penalties(*request.params, *request.state, row);
  for (TokenId token : request.banned) row.edit(token, [](float) { return kBanned; });
}

// Candidates come sorted, best first. Weights are exp(l_i / T - l_0 / T), summed in that order by plain additions.
// Cuts `weights` at top-p (the smallest set whose share reaches p) and min-p.
std::size_t cut(const SamplingParams& params, std::vector<float>& weights) {
  float total = 0.0f;
  for (float weight : weights) total += weight;
  std::size_t kept = weights.size();
  if (params.top_p < 1.0f) {
    float running = 0.0f;
    for (std::size_t i = 0; i < kept; ++i) {
      running += weights[i];
      if (running >= params.top_p * total) kept = i + 1;
    }
  }
  // The best candidate's weight is 1: min_p is relative to it.
  while (kept > 1 && weights[kept - 1] < params.min_p) --kept;
  return kept;
}

TokenId draw(std::span<const Candidate> candidates, const SamplingParams& params, std::int64_t position,
             std::vector<float>& weights) {
  weights.clear();
  const float best = candidates[0].logit / params.temperature;
  for (const Candidate& candidate : candidates) {
    // A weight of 0 adds nothing to any sum, and neither does any that follows: the candidates are sorted.
    const float difference =
        candidate.logit == candidates[0].logit ? 0.0f : candidate.logit / params.temperature - best;
    const float weight = exp_contract(difference);
    if (!(weight > 0.0f)) break;
    weights.push_back(weight);
  }
  const std::size_t kept = cut(params, weights);
  float total = 0.0f;
  for (std::size_t i = 0; i < kept; ++i) total += weights[i];
  const float u = uniform(params.seed, static_cast<std::uint32_t>(position), RandomPurpose::draw) * total;
  float running = 0.0f;
  for (std::size_t i = 0; i < kept; ++i) {
    running += weights[i];
    if (running > u) return candidates[i].id;
  }
  return candidates[kept - 1].id;
}

}  // namespace

std::int64_t Sampler::candidates_wanted(const SamplingParams& params) const {
  if (params.temperature == 0.0f || params.top_k == 1) return 1;
  return params.top_k == 0 ? vocabulary_ : std::min<std::int64_t>(params.top_k, vocabulary_);
}

// Of the raw logits, so before any rule: the sum over the vocabulary, and the most likely tokens.
void Sampler::log_probabilities(std::span<SampleRequest> requests) {
  sums_.clear();
  tops_.clear();
  log_sums_.resize(requests.size());
  std::size_t likely = 0;
  for (const SampleRequest& request : requests) likely += static_cast<std::size_t>(std::max(request.logprobs, 0));
  likely_.resize(likely);
  Candidate* place = likely_.data();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const SampleRequest& request = requests[i];
    if (request.logprobs < 0) continue;
    sums_.push_back({request.logits, vocabulary_, &log_sums_[i]});
    const std::int64_t count = std::min<std::int64_t>(request.logprobs, vocabulary_);
    if (count > 0) tops_.push_back({request.logits, vocabulary_, count, place});
    place += count;
  }
  if (sums_.empty()) return;
  backend_.log_sum_exp(sums_);
  backend_.top_candidates(tops_);
  const Candidate* next = likely_.data();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int64_t count = std::min<std::int64_t>(std::max(requests[i].logprobs, 0), vocabulary_);
    requests[i].out->top.clear();
    for (std::int64_t k = 0; k < count; ++k, ++next)
      requests[i].out->top.push_back({next->id, next->logit - log_sums_[i]});
  }
}

void Sampler::find_candidates(std::span<SampleRequest> requests) {
  tops_.clear();
  std::size_t wanted = 0;
  for (const SampleRequest& request : requests) wanted += static_cast<std::size_t>(candidates_wanted(*request.params));
  candidates_.resize(wanted);
  Candidate* place = candidates_.data();
  for (const SampleRequest& request : requests) {
    const std::int64_t count = candidates_wanted(*request.params);
    tops_.push_back({request.logits, vocabulary_, count, place});
    place += count;
  }
  backend_.top_candidates(tops_);
}

// The token's logit before the rules: the first that was remembered, else what stands in the row.
float Sampler::raw_logit(const SampleRequest& request, std::size_t first_edit, std::size_t last_edit) const {
  for (std::size_t i = first_edit; i < last_edit; ++i) {
    if (edits_[i].id == request.out->token) return edits_[i].logit;
  }
  return request.logits[request.out->token];
}

void Sampler::run(std::span<SampleRequest> requests) {
  log_probabilities(requests);
  edits_.clear();
  edits_end_.clear();
  for (SampleRequest& request : requests) {
    RowEditor row(request.logits, edits_);
    apply_rules(request, row);
    edits_end_.push_back(edits_.size());
  }
  find_candidates(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SampleRequest& request = requests[i];
    const std::span<const Candidate> candidates(tops_[i].out, static_cast<std::size_t>(tops_[i].count));
    request.impossible = !(candidates[0].logit > kBanned);
    if (request.impossible) continue;
    request.out->token =
        candidates.size() == 1 ? candidates[0].id : draw(candidates, *request.params, request.position, weights_);
    if (request.logprobs < 0) continue;
    request.out->logprob = raw_logit(request, i == 0 ? 0 : edits_end_[i - 1], edits_end_[i]) - log_sums_[i];
  }
}

}  // namespace troupe
