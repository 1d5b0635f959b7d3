#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"
#include "runtime/load/vocabulary_data.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace troupe::app {
namespace {

struct Flags {
  std::string model;
  std::string text = "-";
  bool jsonl = false;
  bool parse_special = false;
};

Result<Tokenizer> open_tokenizer(const std::string& path) {
  auto file = Gguf::open(path);
  if (!file) return file.error();
  auto data = read_vocabulary(*file);
  if (!data) return data.error();
  auto vocabulary = Vocabulary::create(std::move(*data));
  if (!vocabulary) return vocabulary.error();
  return Tokenizer::create(std::make_shared<Vocabulary>(std::move(*vocabulary)));
}

Tokenizer::Specials specials(bool parse) {
  return parse ? Tokenizer::Specials::parse : Tokenizer::Specials::as_text;
}

// One line {"text": ..., "parse_special": bool} in, one line {"ids": [...]} out. A bad line ends it, by its number.
int tokenize_lines(const Tokenizer& tokenizer) {
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    const auto request = nlohmann::json::parse(line, nullptr, false);
    const bool usable = request.is_object() && request.contains("text") && request["text"].is_string() &&
                        (!request.contains("parse_special") || request["parse_special"].is_boolean());
    if (!usable) {
      return complain({ErrorCode::bad_input,
                       "line " + std::to_string(number) + R"( is not {"text": "...", "parse_special": true|false})"});
    }
    const auto ids =
        tokenizer.encode(request["text"].get<std::string>(), specials(request.value("parse_special", false)));
    std::cout << nlohmann::json{{"ids", ids}}.dump() << '\n';
  }
  return kDone;
}

int tokenize(const Flags& flags) {
  auto tokenizer = open_tokenizer(flags.model);
  if (!tokenizer) return complain(tokenizer.error());
  if (flags.jsonl) return tokenize_lines(*tokenizer);
  auto text = read_text(flags.text);
  if (!text) return complain(text.error());
  for (TokenId id : tokenizer->encode(*text, specials(flags.parse_special))) {
    const nlohmann::json piece = std::string(tokenizer->vocabulary().bytes(id));
    std::cout << id << '\t' << piece.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }
  return kDone;
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand("tokenize", "Token ids of a text (from a file or stdin)");
  auto flags = std::make_shared<Flags>();
  command->add_option("MODEL", flags->model, "A GGUF file")->required();
  command->add_option("TEXT", flags->text, "A text file; -: stdin")->capture_default_str();
  command->add_flag("--jsonl", flags->jsonl, R"(stdin: lines {"text":…,"parse_special":…}; stdout: lines {"ids":[…]})");
  command->add_flag("--parse-special", flags->parse_special, "Match control tokens in the text");
  command->callback([flags, &action] { action = [flags] { return tokenize(*flags); }; });
}

}  // namespace troupe::app
