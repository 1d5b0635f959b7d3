#include "kernels/reductions.h"

#include <algorithm>
#include <limits>

#include "kernels/math.h"

namespace troupe {
namespace {

Candidate best_of(const float* logits, std::int64_t vocabulary) {
  Candidate best{logits[0], 0};
  for (std::int64_t i = 1; i < vocabulary; ++i) {
    const Candidate next{logits[i], static_cast<std::int32_t>(i)};
    // The plain comparison decides all but the NaN cases.
    if (next.logit > best.logit || (best.logit != best.logit && goes_before(next, best))) best = next;
  }
  return best;
}

// Keeps the best `count` in a heap whose top is the worst kept: one comparison for most of the vocabulary.
void keep_best(const TopRequest& request) {
  Candidate* begin = request.out;
  Candidate* end = begin + request.count;
  for (std::int64_t i = 0; i < request.count; ++i) begin[i] = {request.logits[i], static_cast<std::int32_t>(i)};
  std::make_heap(begin, end, goes_before);
  for (std::int64_t i = request.count; i < request.vocabulary; ++i) {
    const Candidate next{request.logits[i], static_cast<std::int32_t>(i)};
    if (!goes_before(next, *begin)) continue;
    std::pop_heap(begin, end, goes_before);
    end[-1] = next;
    std::push_heap(begin, end, goes_before);
  }
  std::sort(begin, end, goes_before);
}

void sort_all(const TopRequest& request) {
  for (std::int64_t i = 0; i < request.vocabulary; ++i) {
    request.out[i] = {request.logits[i], static_cast<std::int32_t>(i)};
  }
  std::sort(request.out, request.out + request.vocabulary, goes_before);
}

}  // namespace

void top_candidates(const TopRequest& request) {
  if (request.count == 1) {
    *request.out = best_of(request.logits, request.vocabulary);
  } else if (request.count == request.vocabulary) {
    sort_all(request);
  } else {
    keep_best(request);
  }
}

float log_sum_exp(const float* logits, std::int64_t vocabulary) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < vocabulary; ++i) largest = std::max(largest, logits[i]);
  float part[64] = {};
  for (std::int64_t i = 0; i < vocabulary; ++i) part[i % 64] += exp_contract(logits[i] - largest);
  for (int w = 32; w >= 1; w /= 2) {
    for (int i = 0; i < w; ++i) part[i] += part[i + w];
  }
  return largest + log_contract(part[0]);
}

}  // namespace troupe
