// troupe complete: a text goes on.
#include <cstdio>
#include <optional>

#include "actors/troupe.h"
#include "apps/troupe/command.h"
#include "apps/troupe/interrupt.h"
#include "apps/troupe/options.h"
#include "apps/troupe/output.h"

namespace troupe::app {
namespace {

struct CompleteFlags {
  ModelFlags model;
  SamplingFlags sampling;
  WindowFlags window;
  HostFlags host;
  std::optional<std::string> prompt;
  std::string file = "-";
  bool echo = false;
  bool heal = false;
};

Result<TurnEnd> stream(Host& host, const CompleteFlags& flags, std::string prompt, Interrupt& interrupt) {
  auto session = host.open_session({.sampling = flags.sampling.params, .window = flags.window.window});
  if (!session) return session.error();
  Turn turn;
  turn.kind = Turn::Kind::text;
  turn.text = std::move(prompt);
  turn.heal = flags.heal;
  turn.limits.max_tokens = flags.sampling.max_tokens;
  turn.limits.stop = flags.sampling.stop;
  const Interrupt::Guard guard(interrupt, [&] { session->stop(); });
  return session->take(std::move(turn), [](const TextDelta& delta) { return print(delta.text); });
}

int complete(const CompleteFlags& flags) {
  Interrupt interrupt;
  Result<std::string> prompt = flags.prompt ? Result<std::string>(*flags.prompt) : read_text(flags.file);
  if (!prompt) return complain(prompt.error());
  auto host = open_host(flags.model, flags.host);
  if (!host) return complain(host.error());
  if (flags.echo) print(*prompt);
  auto end = stream(*host, flags, std::move(*prompt), interrupt);
  print("\n");
  if (!end) return complain(end.error());
  std::fprintf(stderr, "%lld prompt tokens, %zu tokens, %s\n", static_cast<long long>(end->prompt_tokens),
               end->tokens.size(), name(end->reason));
  return end->reason == FinishReason::cancelled ? kInterrupted : kDone;  // a lost output is main's to tell
}

}  // namespace

void add_complete(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("complete", "Continue a text, without a chat template");
  auto flags = std::make_shared<CompleteFlags>();
  flags->model.add_to(*command);
  flags->sampling.add_to(*command);
  flags->window.add_to(*command);
  flags->host.add_to(*command);
  auto* file = command->add_option("-f,--file", flags->file, "A file with the text; -: stdin")->capture_default_str();
  command->add_option("-p,--prompt", flags->prompt, "The text; without it --file is read")->excludes(file);
  command->add_flag("--heal", flags->heal,
                    "Let the first token reach back into the text's end, where that is cut in a word");
  command->add_flag("--echo", flags->echo, "Print the prompt too");
  command->callback([flags, &action] { action = [flags] { return complete(*flags); }; });
}

}  // namespace troupe::app
