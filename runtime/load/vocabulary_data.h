// The vocabulary's side of a GGUF file's metadata (tokenizer.ggml.*), as it stands there.
#pragma once

#include "runtime/load/gguf.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

Result<VocabularyData> read_vocabulary(const Gguf& file);

}  // namespace troupe
