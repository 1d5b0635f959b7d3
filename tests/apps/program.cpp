#include "tests/apps/program.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sys/wait.h>

namespace troupe::test {

Ended Program::run(const std::string& command) {
  const std::string err = folder_.file("err");
  const std::string line = "export B='" TROUPE_BIN "' M='" + model_ + "'; { " + command + "; } 2>'" + err + "'";
  Ended ended;
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ended.out.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream file(err);
  ended.err.assign(std::istreambuf_iterator<char>(file), {});
  return ended;
}

}  // namespace troupe::test
