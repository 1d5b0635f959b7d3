// run_isolated: one batch with the fate of a failing step.
//
// A StepFault may come from one step's data without saying whose. The batch is retried once, whole, from unchanged
// state (nothing was committed); if it fails again, its slices run one by one, without their guesses, and only the
// guilty ones are marked failed. Everything else (DeviceFault, a broken promise of ours) leaves as it came: it ends the
// batcher.
#pragma once

#include <functional>
#include <span>

#include "runtime/batch.h"

namespace troupe {

// One forward pass over a batch: Engine::run, or what a test puts in its place.
using RunBatch = std::function<void(std::span<Slice>)>;

void run_isolated(const RunBatch& run, std::span<Slice> batch);
// With `fuse` as above; without, every slice is a launch of its own.
void run_launch(const RunBatch& run, std::span<Slice> batch, bool fuse);

}  // namespace troupe
