// A chat on disk: JSON with the messages and every token of the session. Written whole or not at all (a temporary file,
// then rename); refused with a sentence when it is not one.
#pragma once

#include <string>

#include "actors/records.h"

namespace troupe::app {

Result<void> save_chat(const std::string& path, const Transcript& transcript);
Result<Transcript> load_chat(const std::string& path);

}  // namespace troupe::app
