// What tests of draft models share: engines that guess, and houses whose own launches are dear.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "tests/actors/actor_lab.h"
#include "tests/support/cut_model.h"

namespace troupe::test {

// A draft model: the first layers of the model itself (it has two), or one that knows nothing of it (0).
inline DraftEngine draft_of(int layers) {
  const ScratchFolder folder;
  TinyModel stranger = tiny_model(DType::q4_0);
  stranger.seed = 99;
  const std::string path = layers == 0 ? write_tiny_model(stranger, folder.file("draft.gguf"))
                                       : write_cut_model(tiny_path(), layers, folder.file("draft.gguf"));
  return DraftEngine::of(std::move(*Engine::open(path, lab_options())));
}

// The model's launches cost more than the draft's, as those of a larger one do.
inline RunBatch slowly(const std::shared_ptr<Engine>& engine) {
  return [&engine](std::span<Slice> batch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    engine->run(batch);
  };
}

// Several times as long as the draft's, on every machine.
inline RunBatch much_more_slowly(const std::shared_ptr<Engine>& engine) {
  return [&engine](std::span<Slice> batch) {
    const auto began = std::chrono::steady_clock::now();
    engine->run(batch);
    std::this_thread::sleep_for(std::chrono::milliseconds(1) + 8 * (std::chrono::steady_clock::now() - began));
  };
}

}  // namespace troupe::test
