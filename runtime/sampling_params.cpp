#include "runtime/sampling_params.h"

#include <cmath>
#include <string>

namespace troupe {
namespace {

Error out_of_range(const std::string& field, const std::string& value, const char* allowed) {
  return {ErrorCode::bad_input, field + " is " + value + "; it must be " + allowed};
}

Error out_of_range(const char* field, double value, const char* allowed) {
  return out_of_range(field, std::to_string(value), allowed);
}

// All of these are written so that NaN fails every test.
bool at_least(float value, float least) {
  return value >= least && std::isfinite(value);
}

bool share(float value) {
  return value >= 0.0f && value <= 1.0f;
}

Result<void> check_penalties(const SamplingParams& p) {
  if (!(p.repetition_penalty > 0.0f && std::isfinite(p.repetition_penalty)))
    return out_of_range("repetition_penalty", p.repetition_penalty, "above 0");
  if (!(std::fabs(p.frequency_penalty) <= 2.0f))
    return out_of_range("frequency_penalty", p.frequency_penalty, "-2 to 2");
  if (!(std::fabs(p.presence_penalty) <= 2.0f)) return out_of_range("presence_penalty", p.presence_penalty, "-2 to 2");
  return {};
}

Result<void> check_bias(const SamplingParams& p, std::int64_t vocabulary) {
  for (const auto& [token, bias] : p.logit_bias) {
    if (token < 0 || token >= vocabulary) return out_of_range("a logit_bias token", token, "inside the vocabulary");
    if (!std::isfinite(bias)) return out_of_range("a logit_bias", bias, "finite");
  }
  return {};
}

Result<void> check_dry(const SamplingParams& p) {
  if (!at_least(p.dry_multiplier, 0.0f)) return out_of_range("dry_multiplier", p.dry_multiplier, "0 or more");
  if (!at_least(p.dry_base, 1.0f)) return out_of_range("dry_base", p.dry_base, "1 or more");
  if (p.dry_allowed_length < 1) return out_of_range("dry_allowed_length", p.dry_allowed_length, "1 or more");
  const auto& breakers = p.dry_sequence_breakers;
  if (breakers.size() > SamplingParams::kMaxBreakers) {
    return out_of_range("the number of dry_sequence_breakers", std::to_string(breakers.size()), "at most 64");
  }
  for (const std::string& breaker : breakers) {
    if (!breaker.empty() && breaker.size() <= SamplingParams::kMaxBreakerBytes) continue;
    return out_of_range("the length of a dry_sequence_breaker", std::to_string(breaker.size()), "1 to 64 bytes");
  }
  return {};
}

Result<void> check_mirostat(const SamplingParams& p) {
  if (p.mirostat != 0 && p.mirostat != 2) {
    return out_of_range("mirostat", std::to_string(p.mirostat), "0 (off) or 2 (the version)");
  }
  if (!at_least(p.mirostat_tau, 0.0f)) return out_of_range("mirostat_tau", p.mirostat_tau, "0 or more");
  if (!at_least(p.mirostat_eta, 0.0f)) return out_of_range("mirostat_eta", p.mirostat_eta, "0 or more");
  return {};
}

Result<void> check_cuts(const SamplingParams& p) {
  if (!at_least(p.temperature, 0.0f)) return out_of_range("temperature", p.temperature, "0 or more");
  if (!at_least(p.dynatemp_range, 0.0f)) return out_of_range("dynatemp_range", p.dynatemp_range, "0 or more");
  if (!at_least(p.dynatemp_exponent, 0.0f)) return out_of_range("dynatemp_exponent", p.dynatemp_exponent, "0 or more");
  if (p.top_k < 0) return out_of_range("top_k", p.top_k, "0 (all) or more");
  if (!(share(p.typical_p) && p.typical_p > 0.0f))
    return out_of_range("typical_p", p.typical_p, "above 0 and at most 1");
  if (!(share(p.top_p) && p.top_p > 0.0f)) return out_of_range("top_p", p.top_p, "above 0 and at most 1");
  if (!share(p.min_p)) return out_of_range("min_p", p.min_p, "0 to 1");
  if (!share(p.xtc_probability)) return out_of_range("xtc_probability", p.xtc_probability, "0 to 1");
  if (!share(p.xtc_threshold)) return out_of_range("xtc_threshold", p.xtc_threshold, "0 to 1");
  return {};
}

}  // namespace

Result<void> SamplingParams::validate(std::int64_t vocabulary) const {
  if (auto checked = check_cuts(*this); !checked) return checked;
  if (auto checked = check_penalties(*this); !checked) return checked;
  if (auto checked = check_dry(*this); !checked) return checked;
  if (auto checked = check_mirostat(*this); !checked) return checked;
  return check_bias(*this, vocabulary);
}

SamplingParams SamplingParams::greedy() {
  SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

}  // namespace troupe
