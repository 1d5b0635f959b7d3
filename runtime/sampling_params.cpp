#include "runtime/sampling_params.h"

#include <cmath>
#include <string>

namespace troupe {
namespace {

Error out_of_range(const char* field, double value, const char* allowed) {
  return {ErrorCode::bad_input, std::string(field) + " is " + std::to_string(value) + "; it must be " + allowed};
}

}  // namespace

Result<void> SamplingParams::validate(std::int64_t vocabulary) const {
  // Written so that NaN fails every test.
  if (!(temperature >= 0.0f && std::isfinite(temperature)))
    return out_of_range("temperature", temperature, "0 or more");
  if (top_k < 0) return out_of_range("top_k", top_k, "0 (all) or more");
  if (!(top_p > 0.0f && top_p <= 1.0f)) return out_of_range("top_p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0.0f && min_p <= 1.0f)) return out_of_range("min_p", min_p, "0 to 1");
  if (!(repetition_penalty > 0.0f && std::isfinite(repetition_penalty))) {
    return out_of_range("repetition_penalty", repetition_penalty, "above 0");
  }
  if (!(std::fabs(frequency_penalty) <= 2.0f)) return out_of_range("frequency_penalty", frequency_penalty, "-2 to 2");
  if (!(std::fabs(presence_penalty) <= 2.0f)) return out_of_range("presence_penalty", presence_penalty, "-2 to 2");
  for (const auto& [token, bias] : logit_bias) {
    if (token < 0 || token >= vocabulary) return out_of_range("a logit_bias token", token, "inside the vocabulary");
    if (!std::isfinite(bias)) return out_of_range("a logit_bias", bias, "finite");
  }
  return {};
}

SamplingParams SamplingParams::greedy() {
  SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

}  // namespace troupe
