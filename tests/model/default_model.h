// The default model, and the prose that is stored with its reference values.
#pragma once

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/runtime/engine_lab.h"

namespace troupe::test {

// TROUPE_MODEL names its file. Throws when it does not, or the file cannot be opened.
inline std::unique_ptr<Engine> open_default_model(const EngineOptions& options) {
  const char* path = std::getenv("TROUPE_MODEL");
  if (path == nullptr) throw std::runtime_error("set TROUPE_MODEL to the default model's file");
  return open_engine(path, options);
}

// `data`: TROUPE_TEST_DATA.
inline std::vector<TokenId> stored_prose(const std::string& data) {
  return nlohmann::json::parse(std::ifstream(data + "/reference/perplexity.json"))["ids"];
}

}  // namespace troupe::test
