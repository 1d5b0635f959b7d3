// The exceptions of the engine room. Only these two leave a Backend or an Engine on purpose.
#pragma once

#include <stdexcept>

namespace troupe {

// Something in one step's data failed (a throwing logits processor, an impossible sampler state). The batcher retries
// the batch once from unchanged state, then runs its steps one by one; only the guilty step fails.
struct StepFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The device or the engine's own state can no longer be trusted (a CUDA error, a failed invariant). Ends the batcher.
struct DeviceFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
