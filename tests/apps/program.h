// Program: a test with a folder and a tiny model of its own, in which the program runs as a shell runs it.
#pragma once

#include <gtest/gtest.h>
#include <string>

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
  Ended run(const std::string& command);

  ScratchFolder folder_;
  std::string model_;
};

}  // namespace troupe::test
