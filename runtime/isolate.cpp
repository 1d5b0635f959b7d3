#include "runtime/isolate.h"

#include <optional>
#include <string>
#include <utility>

#include "kernels/fault.h"

namespace troupe {
namespace {

// The fault's sentence, or nothing when the batch ran.
std::optional<std::string> try_run(const RunBatch& run, std::span<Slice> batch) {
  for (Slice& slice : batch) {
    slice.sampled = {};
    slice.right = 0;
    slice.failed = false;
    slice.failure.clear();
  }
  try {
    run(batch);
  } catch (const StepFault& fault) {
    return fault.what();
  }
  return std::nullopt;
}

}  // namespace

void run_isolated(const RunBatch& run, std::span<Slice> batch) {
  if (!try_run(run, batch)) return;
  if (!try_run(run, batch)) return;
  for (Slice& slice : batch) {
    slice.tokens = slice.tokens.first(slice.tokens.size() - static_cast<std::size_t>(std::exchange(slice.drafts, 0)));
    if (auto fault = try_run(run, {&slice, 1})) {
      slice.failed = true;
      slice.failure = *fault;
    }
  }
}

void run_launch(const RunBatch& run, std::span<Slice> batch, bool fuse) {
  if (fuse) return run_isolated(run, batch);
  for (Slice& slice : batch) run_isolated(run, {&slice, 1});
}

}  // namespace troupe
