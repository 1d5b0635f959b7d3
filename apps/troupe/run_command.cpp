// troupe run: a chat in the terminal.
#include <cstdlib>
#include <optional>
#include <unistd.h>

#include "actors/troupe.h"
#include "apps/troupe/chat.h"
#include "apps/troupe/command.h"
#include "apps/troupe/options.h"

namespace troupe::app {
namespace {

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  WindowFlags window;
  HostFlags host;
  std::string system;
};

bool colors_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

int run(const RunFlags& flags) {
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  const bool color = terminal && colors_wanted();
  Interrupt interrupt(color ? "\033[0m\n" : "\n");  // before the host starts its threads
  std::optional<LineEditor> editor;
  if (terminal) editor.emplace(interrupt);
  auto host = open_host(flags.model, flags.host);
  if (!host) return complain(host.error());
  return Chat(std::move(*host), {flags.sampling, flags.window.window, flags.system, color}, interrupt,
              editor ? &*editor : nullptr)
      .run();
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("run", "Chat in the terminal, or with what is piped in (a message a line)");
  auto flags = std::make_shared<RunFlags>();
  flags->model.add_to(*command);
  flags->sampling.add_to(*command);
  flags->window.add_to(*command);
  flags->host.add_to(*command);
  command->add_option("--system", flags->system, "The system message");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace troupe::app
