// Engine: backend + model + page pool + scratch. Runs one batch at a time for one caller.
//
//     auto engine = Engine::open("model.gguf", {});
//     KvCache cache((*engine)->pages());
//     cache.reserve(prompt.size() + 64);
//     KvLease lease = cache.lend();
//     Slice slice{.cache = &lease, .tokens = prompt, .wants_token = true, .sampling = &params};
//     (*engine)->run({&slice, 1});
//     cache.commit(prompt.size());
//
// run() is one forward pass, the head for the rows that want it, and the sampling of every slice that wants a token.
// It allocates nothing after the first launches except what Sampled::top holds. A slice's results do not depend on the
// other slices of the batch, on their order, or on how its sequence was cut into slices (docs/numerics.md).
// Not thread-safe; pages() is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/result.h"
#include "runtime/batch.h"
#include "runtime/engine_options.h"
#include "runtime/kv/page_pool.h"
#include "runtime/models/model.h"
#include "runtime/text_side.h"

namespace troupe {

// Totals since the engine was opened. Written by run(), read by anyone; between two reads a launch may end.
struct EngineCounters {
  std::uint64_t launches = 0;
  std::uint64_t rows = 0;     // tokens computed
  std::uint64_t sampled = 0;  // tokens chosen
  double seconds = 0.0;       // inside run()
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(const std::string& path, const EngineOptions& options);
  // For tests: the same engine on a backend of the caller's (a decorated one, say).
  static Result<std::unique_ptr<Engine>> open_on(std::unique_ptr<Backend> backend, const std::string& path,
                                                 const EngineOptions& options);
  // A second model, with this engine's options, on its backend, so that the two do not fight for the cores: only one of
  // them may run() at a time. It holds as many tokens, and in a sequence no more.
  Result<std::unique_ptr<Engine>> open_beside(const std::string& path) const;
  ~Engine();

  const ModelShape& shape() const;
  const TextSide& text() const;
  std::int64_t context() const;  // tokens a sequence may hold
  std::int64_t max_rows() const;
  std::string describe() const;       // one line of facts for people
  std::uint64_t fingerprint() const;  // model + numerics version + kv type: equal numbers promise equal bits
  const std::shared_ptr<PagePool>& pages() const;
  EngineCounters counters() const;

  // Rows of all slices together: 1 .. max_rows(). A slice whose data fails is marked and the others stand.
  // Throws StepFault or DeviceFault (kernels/fault.h); after a StepFault the engine is as good as new.
  void run(std::span<Slice> batch);

 private:
  struct Parts;
  static Result<std::unique_ptr<Engine>> open_parts(std::unique_ptr<Parts> parts, const std::string& path);
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe
