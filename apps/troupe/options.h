// Flags that several subcommands share, and what they become.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "actors/troupe.h"
#include "apps/troupe/read_text.h"
#include "runtime/engine.h"
#include "runtime/token_window.h"

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

  void add_to(CLI::App& command);  // with MODEL
  // Those of the machine that computes, which change no bit of what is computed.
  void add_machine(CLI::App& command);
  EngineOptions engine_options() const;
};

struct SamplingFlags {
  SamplingParams params;
  std::int32_t max_tokens = 0;
  std::vector<std::string> stop;

  void add_to(CLI::App& command);

 private:
  void add_breakers(CLI::App& command);
};

// Of the host that opens the sessions.
struct HostFlags {
  std::int32_t drafts = 0;
  std::string draft;   // a model's file; empty: none
  std::string record;  // a file; empty: none

  void add_to(CLI::App& command);
};

// For a session that goes on past its context.
struct WindowFlags {
  TokenWindow window;

  void add_to(CLI::App& command);
};

Result<Host> open_host(const ModelFlags& model, const HostFlags& host);

// Refuses an empty name, which a script makes of a variable that is not set.
CLI::Validator named();

// "troupe: SENTENCE" on stderr, on one line and harmless to a terminal, whatever the error quotes.
int complain(const Error& error);

// A bar with GB/s on stderr for loads above 256 MB, when stderr is a terminal; else nothing.
std::function<void(std::uint64_t, std::uint64_t)> load_progress();

}  // namespace troupe::app
