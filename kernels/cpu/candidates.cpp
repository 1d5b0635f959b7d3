#include "kernels/cpu/candidates.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/reductions.h"

namespace troupe::cpu {
namespace {

// Buckets of equal width below the largest logit. Distance and product are monotonic in the logit under rounding, so
// buckets are in order, and equal logits meet in one.
constexpr std::int32_t kBuckets = 16384;  // 64 KiB of counters on the stack
constexpr float kWidth = 64.0f;           // logits this far below the largest, and NaN, share the last bucket

std::int32_t bucket_of(float logit, float largest) {
  const float place = (largest - logit) * (kBuckets / kWidth);
  return place < kBuckets - 1 ? static_cast<std::int32_t>(place) : kBuckets - 1;
}

// By insertion: a bucket holds some ten, no NaN among them, and in order of their ids, so only larger logits move.
void sort_few(Candidate* begin, Candidate* end) {
  constexpr std::ptrdiff_t kFew = 64;
  if (end - begin > kFew) return std::sort(begin, end, goes_before);
  for (Candidate* next = begin; next < end; ++next) {
    const Candidate moving = *next;
    Candidate* place = next;
    for (; place > begin && place[-1].logit < moving.logit; --place) *place = place[-1];
    *place = moving;
  }
}

}  // namespace

void sort_vocabulary(const TopRequest& request, float largest) {
  std::int32_t end[kBuckets] = {};
  for (std::int64_t i = 0; i < request.vocabulary; ++i) ++end[bucket_of(request.logits[i], largest)];
  std::int32_t before = 0;
  for (std::int32_t& bucket : end) before += std::exchange(bucket, before);
  // Now the begin of each bucket; filling it moves it to the end.
  for (std::int64_t i = 0; i < request.vocabulary; ++i) {
    std::int32_t& place = end[bucket_of(request.logits[i], largest)];
    request.out[place++] = {request.logits[i], static_cast<std::int32_t>(i)};
  }
  Candidate* begin = request.out;
  for (const std::int32_t& bucket_end : end) {
    Candidate* const stop = request.out + bucket_end;
    if (&bucket_end == &end[kBuckets - 1]) {
      std::sort(begin, stop, goes_before);
    } else {
      sort_few(begin, stop);
    }
    begin = stop;
  }
}

}  // namespace troupe::cpu
