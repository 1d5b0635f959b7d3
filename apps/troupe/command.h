// The subcommands of the program `troupe`. Each add_ function declares its flags and, when it was chosen, leaves what
// is to be run in `action`.
//
// Exit codes: 0 done, 1 failed, 2 wrong use, 130 stopped by Ctrl-C. Results go to stdout (output.h), everything else to
// stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace troupe::app {

using Action = std::function<int()>;

constexpr int kDone = 0, kFailed = 1, kWrongUse = 2, kInterrupted = 130;

void add_run(CLI::App& program, Action& action);
void add_complete(CLI::App& program, Action& action);
void add_inspect(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_tokenize(CLI::App& program, Action& action);
void add_perplexity(CLI::App& program, Action& action);
void add_replay(CLI::App& program, Action& action);

}  // namespace troupe::app
