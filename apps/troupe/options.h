// Flags that several subcommands share, and what they become.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/engine.h"

namespace troupe::app {

struct ModelFlags {
  std::string model;
  std::string isa = "auto";
  std::string kv_type = "f16";
  int threads = 0;
  std::string numa = "interleave";
  std::int64_t context = 0;
  std::uint64_t kv_megabytes = 0;
  std::string chat_template;  // source

  void add_to(CLI::App& command);
  EngineOptions engine_options() const;
};

struct SamplingFlags {
  SamplingParams params;
  std::int32_t max_tokens = 0;
  std::vector<std::string> stop;

  void add_to(CLI::App& command);
};

// "troupe: SENTENCE" on stderr.
int complain(const Error& error);

// A bar with GB/s on stderr for loads above 256 MB, when stderr is a terminal; else nothing.
std::function<void(std::uint64_t, std::uint64_t)> load_progress();

// stdin until its end. What is not there is an Error.
Result<std::string> read_text(const std::string& path_or_dash);

}  // namespace troupe::app
