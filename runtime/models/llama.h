// The llama architecture (Touvron et al. 2023): RMSNorm, rotary positions, grouped-query attention, SwiGLU, and a head
// of its own or tied to the embedding.
#pragma once

#include "runtime/models/model.h"

namespace troupe {

Result<std::unique_ptr<Model>> load_llama(const Gguf& file, Backend& backend, const LoadOptions& options);

}  // namespace troupe
