// A chat on disk: JSON with the messages, every token of the session, and the model whose tokens they are. Written
// whole or not at all (replace_file.h); refused with a sentence when it is not one. That the tokens are inside a
// vocabulary is checked by whoever opens a session with them.
#pragma once

#include <cstdint>
#include <string>

#include "actors/records.h"

namespace troupe::app {

struct SavedChat {
  std::string model;              // for people
  std::uint64_t fingerprint = 0;  // HostInfo's; 0 in files that have none
  Transcript transcript;
};

Result<void> save_chat(const std::string& path, const SavedChat& chat);
Result<SavedChat> load_chat(const std::string& path);

}  // namespace troupe::app
