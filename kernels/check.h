// TROUPE_CHECK: an assert that stays on in release, for what only our own code can get wrong.
//
// It throws (std::logic_error with place and text) instead of aborting, so that a bug ends one actor, not the process.
// Never use it on anything that a user, a file or a peer can cause: that is a Result (kernels/result.h).
#pragma once

#include <stdexcept>
#include <string>

namespace troupe {

[[noreturn]] inline void check_failed(const char* file, int line, const char* what) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": broken promise: " + what);
}

}  // namespace troupe

#define TROUPE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::troupe::check_failed(__FILE__, __LINE__, #condition))
