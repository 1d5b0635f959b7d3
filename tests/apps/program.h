// Program: a test with a folder and a tiny model of its own, in which the program runs as a shell runs it.
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/wait.h>

#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {

struct Ended {
  int code = -1;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  Program() : model_(write_tiny_model(tiny_model(DType::q8_0), folder_.file("tiny.gguf"))) {}

  // `command` is of the shell, in which $B is the folder of programs and $M the tiny model.
  Ended run(const std::string& command) {
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

  ScratchFolder folder_;
  std::string model_;
};

}  // namespace troupe::test
