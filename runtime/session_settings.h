// What a session keeps for all its turns, and what a fork or a file of it has too.
#pragma once

#include <string>

#include "runtime/sampling_params.h"
#include "runtime/token_window.h"

namespace troupe {

struct SessionSettings {
  std::string key;  // who pays (actors/records.h, OpenSession)
  SamplingParams sampling;
  TokenWindow window;
};

}  // namespace troupe
