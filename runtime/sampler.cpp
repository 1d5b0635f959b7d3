#include "runtime/sampler.h"

#include <algorithm>
#include <exception>
#include <limits>

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

// What stood in their places need not be remembered: none of them will be chosen.
void ban_others(std::span<const TokenId> allowed, std::span<float> logits) {
  auto next = allowed.begin();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (next != allowed.end() && static_cast<std::size_t>(*next) == id) {
      ++next;
    } else {
      logits[id] = kBanned;
    }
  }
}

}  // namespace

std::int64_t Sampler::candidates_wanted(const SamplingParams& params) const {
  if (params.temperature == 0.0f) return 1;
  if (params.mirostat != 0) return vocabulary_;
  return params.top_k == 0 ? vocabulary_ : std::min<std::int64_t>(params.top_k, vocabulary_);
}

void Sampler::call_processor(SampleRequest& request) {
  raw_at_.push_back(-1);
  if (request.state == nullptr || request.state->processor == nullptr) return;
  const std::span<float> row(request.logits, static_cast<std::size_t>(vocabulary_));
  if (request.logprobs >= 0) {
    raw_at_.back() = std::ssize(raw_rows_);
    raw_rows_.insert(raw_rows_.end(), row.begin(), row.end());
  }
  try {
    (*request.state->processor)(row, request.state->history);
  } catch (const std::exception& thrown) {
    request.failure = std::string("the logits processor threw: ") + thrown.what();
  } catch (...) {
    request.failure = "the logits processor threw something that is no std::exception";
  }
}

void Sampler::apply_rules(const SampleRequest& request) {
  RowEditor row(request.logits, edits_);
  for (const auto& [token, bias] : request.params->logit_bias) {
    row.edit(token, [bias = bias](float l) { return bias <= kBanBias ? kBanned : l + bias; });
  }
  if (request.state != nullptr) {
    apply_penalties(*request.params, *request.state, row);
    if (request.params->dry_multiplier > 0.0f) {
      for (const Candidate& one : dry_.penalties(*request.params, *request.state))
        row.edit(one.id, [&](float l) { return l - one.logit; });
    }
  }
  for (TokenId token : request.banned) row.edit(token, [](float) { return kBanned; });
  if (request.state != nullptr && request.state->spelling != nullptr) {
    ban_others(*request.state->spelling, {request.logits, static_cast<std::size_t>(vocabulary_)});
  }
  edits_end_.push_back(edits_.size());
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

// The token's logit before the rules: of a row that was kept, else the first that was remembered, else what stands in
// the row.
float Sampler::raw_logit(const SampleRequest& request, std::size_t which) const {
  const TokenId token = request.out->token;
  if (raw_at_[which] >= 0) return raw_rows_[static_cast<std::size_t>(raw_at_[which] + token)];
  for (std::size_t i = which == 0 ? 0 : edits_end_[which - 1]; i < edits_end_[which]; ++i) {
    if (edits_[i].id == token) return edits_[i].logit;
  }
  return request.logits[token];
}

void Sampler::choose(const SampleRequest& request, std::span<Candidate> candidates) {
  request.out->token = candidates[0].id;
  if (candidates.size() == 1) return;
  const float mu = request.state == nullptr ? 2.0f * request.params->mirostat_tau : request.state->mirostat_mu;
  request.out->token = choice_.choose(candidates, *request.params, request.position, mu);
  request.out->surprise = choice_.surprise();
}

void Sampler::run(std::span<SampleRequest> requests) {
  log_probabilities(requests);
  edits_.clear();
  edits_end_.clear();
  raw_rows_.clear();
  raw_at_.clear();
  for (SampleRequest& request : requests) {
    call_processor(request);
    apply_rules(request);
  }
  find_candidates(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SampleRequest& request = requests[i];
    const std::span<Candidate> candidates(tops_[i].out, static_cast<std::size_t>(tops_[i].count));
    request.impossible = !request.failure.empty() || !(candidates[0].logit > kBanned);
    if (request.impossible) continue;
    choose(request, candidates);
    if (request.logprobs < 0) continue;
    request.out->logprob = raw_logit(request, i) - log_sums_[i];
  }
}

}  // namespace troupe
