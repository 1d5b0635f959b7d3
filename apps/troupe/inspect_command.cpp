#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"
#include "runtime/load/inspect.h"
#include "runtime/load/vocabulary_data.h"
#include "runtime/models/llama_params.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/printable.h"
#include "runtime/text/tokenizer.h"

namespace troupe::app {
namespace {

constexpr std::size_t kLongestVerdict = 1000;

struct InspectFlags {
  std::string model;
  bool summary = false;
  bool show_template = false;
};

std::string chat_template_verdict(const Gguf& file) {
  auto source = file.get_string("tokenizer.chat_template");
  return source ? template_verdict(*source) : "none in the file";
}

std::string tokenizer_verdict(const Gguf& file) {
  auto data = read_vocabulary(file);
  if (!data) return "refused: " + data.error().message;
  auto vocabulary = Vocabulary::create(std::move(*data));
  if (!vocabulary) return "refused: " + vocabulary.error().message;
  auto shared = std::make_shared<Vocabulary>(std::move(*vocabulary));
  auto tokenizer = Tokenizer::create(shared);
  return tokenizer ? "byte-level BPE, " + std::to_string(shared->size()) + " tokens" : tokenizer.error().message;
}

// "23040 bytes a token in f16, 46080 in f32, 12240 in i8".
std::string cache_verdict(const Gguf& file) {
  const auto params = LlamaParams::read(file);
  if (!params) return "refused: " + params.error().message;
  const ModelShape& s = params->shape;
  std::string text;
  for (KvType type : kKvTypes) {
    const KvLayout layout{static_cast<int>(s.layers), static_cast<int>(s.kv_heads), static_cast<int>(s.head_dim), type};
    text += (text.empty() ? "" : ", ") + std::to_string(layout.bytes_per_token());
    text += (type == kKvTypes[0] ? " bytes a token in " : " in ") + std::string(name(type));
  }
  return text;
}

// As it stands for a file or a program; on a terminal its lines, harmless.
void print_template(std::string_view source) {
  if (::isatty(STDOUT_FILENO) == 0) {
    std::fwrite(source.data(), 1, source.size(), stdout);
    std::fputc('\n', stdout);
    return;
  }
  while (!source.empty()) {
    const std::string_view line = source.substr(0, source.find('\n'));
    std::printf("%s\n", printable(line, line.size()).c_str());
    source.remove_prefix(std::min(line.size() + 1, source.size()));
  }
}

int inspect(const InspectFlags& flags) {
  auto file = Gguf::open(flags.model);
  if (!file) return complain(file.error());
  if (flags.show_template) {
    auto source = file->get_string("tokenizer.chat_template");
    if (!source) return complain(source.error());
    print_template(*source);
    return kDone;
  }
  std::fputs(describe(*file, {.tensors = !flags.summary}).c_str(), stdout);
  std::printf("keys, values   %s\n", printable(cache_verdict(*file), kLongestVerdict).c_str());
  std::printf("tokenizer      %s\n", printable(tokenizer_verdict(*file), kLongestVerdict).c_str());
  std::printf("chat template  %s\n", printable(chat_template_verdict(*file), kLongestVerdict).c_str());
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("inspect", "Show a file's metadata, tensors, sizes, tokenizer and template");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option("MODEL", flags->model, "A GGUF file")->required()->check(named());
  command->add_flag("--summary", flags->summary, "Leave the tensor table out");
  command->add_flag("--template", flags->show_template, "Print the chat template's source and nothing else");
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace troupe::app
