#include <cstdio>
#include <unistd.h>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"
#include "runtime/perplexity.h"

namespace troupe::app {
namespace {

struct PerplexityFlags {
  ModelFlags model;
  std::string text;
  std::int64_t window = 512;
  bool float_weights = false;
};

// Line ends of Windows as "\n", the only ones that models have learnt: each "\r" would count as a badly predicted
// token, and the same text would get two values. A "\r" elsewhere stays.
std::string with_plain_line_ends(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "\r\n") != 0) plain += text[at];
  }
  return plain;
}

// A live line on a terminal; nothing into a file.
std::function<void(std::int64_t, std::int64_t)> window_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [](std::int64_t done, std::int64_t total) {
    std::fprintf(stderr, "\r%lld of %lld tokens%s", static_cast<long long>(done), static_cast<long long>(total),
                 done == total ? "\n" : "");
  };
}

int run_perplexity(const PerplexityFlags& flags) {
  auto text = read_text(flags.text);
  if (!text) return complain(text.error());
  EngineOptions options = flags.model.engine_options();
  options.expand_to_f32 = flags.float_weights;
  auto engine = Engine::open(flags.model.model, options);
  if (!engine) return complain(engine.error());
  const TextSide& side = (*engine)->text();
  if (!side.tokenizer) return complain(side.tokenizer_error);
  const auto tokens = side.tokenizer->encode(with_plain_line_ends(*text), Tokenizer::Specials::as_text);
  PerplexityOptions how;
  how.window = flags.window;
  how.progress = window_progress();
  auto result = perplexity(**engine, tokens, how);
  if (!result) return complain(result.error());
  std::printf("perplexity %.6f over %zu tokens (of %zu; windows of %lld)\n", result->value, result->logprobs.size(),
              tokens.size(), static_cast<long long>(flags.window));
  return kDone;
}

}  // namespace

void add_perplexity(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("perplexity", "How well a model predicts a text");
  auto flags = std::make_shared<PerplexityFlags>();
  flags->model.add_to(*command);
  command->add_option("TEXT", flags->text, "A text file; -: stdin. Line ends \\r\\n count as \\n")->required();
  command->add_option("--window", flags->window, "Tokens of a window, each with an empty cache; 0: one window")
      ->check(CLI::Range(2, 1 << 20) | CLI::IsMember({0}))
      ->capture_default_str();
  command->add_flag("--f32", flags->float_weights, "Expand the weights to F32 first (4 to 8 times the memory)");
  command->callback([flags, &action] { action = [flags] { return run_perplexity(*flags); }; });
}

}  // namespace troupe::app
