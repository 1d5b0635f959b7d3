#include "apps/troupe/output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"

namespace troupe::app {

void prepare_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // The lowest free number is the one that open() gives; the wrong direction makes every use of it fail.
    [[maybe_unused]] const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

int exit_code_after_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  // A stream does not remember why an earlier write failed: one more byte asks again.
  if (errno == 0 && ::write(STDOUT_FILENO, "\n", 1) == 1) errno = 0;
  if (errno == EPIPE) return kFailed;
  const std::string reason = errno == 0 ? "a part of it was lost" : std::strerror(errno);
  return complain({ErrorCode::io, "cannot write the result: " + reason});
}

}  // namespace troupe::app
