// The sampling reductions of one logits row, in the contract's order. Scalar code that every CPU backend shares.
#pragma once

#include "kernels/backend.h"

namespace troupe {

// a before b: the larger logit, ties by lower id; NaN last.
inline bool goes_before(const Candidate& a, const Candidate& b) {
  const bool a_nan = a.logit != a.logit, b_nan = b.logit != b.logit;
  if (a_nan || b_nan) return a_nan == b_nan ? a.id < b.id : b_nan;
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void top_candidates(const TopRequest& request);
float log_sum_exp(const float* logits, std::int64_t vocabulary);

}  // namespace troupe
