// The first layers of a model, as a model: a draft for tests that is right sometimes.
#pragma once

#include <string>

namespace troupe {

// Writes the GGUF file `model` with its first `layers` layers only, byte for byte otherwise, and gives `path` back.
// Throws std::runtime_error for a file that is not a whole GGUF with llama's key and names.
std::string write_cut_model(const std::string& model, int layers, const std::string& path);

}  // namespace troupe
