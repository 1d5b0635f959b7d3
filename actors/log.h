// The log of the actors: what a person who runs a host must know (a batcher that died, an engine that was given up).
//
// Goes to the spdlog logger named "troupe", which an application may register before it opens a host; else one that
// writes to stderr is made. Never called on a token's path.
#pragma once

#include <string>

namespace troupe {

void log_warning(const std::string& text);
void log_error(const std::string& text);

}  // namespace troupe
