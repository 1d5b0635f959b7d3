// What a record may say: a file with right checksums can still hold anything, and an engine checks its callers with
// TROUPE_CHECK, which ends the process. So whatever an engine or a queue would stumble over is refused here.
#pragma once

#include <cstdint>

#include "kernels/result.h"
#include "runtime/record/record.h"

namespace troupe {

struct BelievableWithin {
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  std::int64_t max_rows = 0;
};

// Each Error says what cannot be.
Result<void> believable(const BatcherBegan& began, const BelievableWithin& engine);
Result<void> believable(const StepArrived& step, const BelievableWithin& engine);
Result<void> believable(const StepGuessed& guessed, const BelievableWithin& engine);
Result<void> believable(TimePoint clock);
// Of a launch of these slices.
Result<void> believable(const LaunchEnded& ended, const std::vector<RecordedSlice>& slices,
                        const BelievableWithin& engine);

}  // namespace troupe
