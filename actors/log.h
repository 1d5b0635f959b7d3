// The log of the actors: what a person who runs a host must know (a batcher that died, an engine that was given up), as
// warnings and errors; and as info a line for each session that has ended.
//
// Goes to the spdlog logger named "troupe", which an application may register, with a level of its choice, before it
// opens a host; else one is made that writes warnings and errors to stderr. Never called on a token's path.
#pragma once

#include <string>

namespace troupe {

void log_info(const std::string& text);
void log_warning(const std::string& text);
void log_error(const std::string& text);

}  // namespace troupe
