#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"
#include "runtime/load/vocabulary_data.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace troupe::app {
namespace {

struct TokenizeFlags {
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

struct Request {
  std::string text;
  bool parse_special = false;
};

// {"text": ..., "parse_special": bool}, the second if it is not false; the error says what of it is wrong.
Result<Request> read_request(const std::string& line) {
  const auto wrong = [](std::string cause) { return Error{ErrorCode::bad_input, std::move(cause)}; };
  try {
    const auto given = nlohmann::json::parse(line);
    if (!given.is_object()) return wrong("it is JSON, but no object");
    const auto text = given.find("text"), parse = given.find("parse_special");
    if (text == given.end()) return wrong("\"text\" is missing");
    if (!text->is_string()) return wrong("\"text\" is not a string");
    if (parse != given.end() && !parse->is_boolean()) return wrong("\"parse_special\" is neither true nor false");
    return Request{text->get<std::string>(), parse != given.end() && parse->get<bool>()};
  } catch (const nlohmann::json::parse_error& error) {
    return wrong(line.empty() ? "it is empty" : error.what());
  }
}

// A request a line in, one line {"ids": [...]} out. A bad line ends it, by its number.
int tokenize_lines(const Tokenizer& tokenizer) {
  std::string line;
  int number = 0;
  while (std::getline(std::cin, line)) {
    ++number;
    const auto request = read_request(line);
    if (!request) {
      return complain({request.error().code, "line " + std::to_string(number) +
                                                 R"( is not {"text": "...", "parse_special": true|false}: )" +
                                                 request.error().message});
    }
    const auto ids = tokenizer.encode(request->text, specials(request->parse_special));
    std::cout << nlohmann::json{{"ids", ids}}.dump() << '\n';
  }
  // Where the standard streams are one with C's, a failed read looks like the end here, and is told by stdin alone.
  if (std::cin.eof() && std::ferror(stdin) == 0) return kDone;
  return complain({ErrorCode::io, "stdin: cannot read line " + std::to_string(number + 1) + ", or it is too long"});
}

int tokenize(const TokenizeFlags& flags) {
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
  auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("MODEL", flags->model, "A GGUF file")->required()->check(named());
  auto* text = command->add_option("TEXT", flags->text, "A text file; -: stdin")->capture_default_str();
  auto* parse = command->add_flag("--parse-special", flags->parse_special, "Match control tokens in the text");
  command->add_flag("--jsonl", flags->jsonl, R"(stdin: lines {"text":…,"parse_special":…}; stdout: lines {"ids":[…]})")
      ->excludes(text)
      ->excludes(parse);
  command->callback([flags, &action] { action = [flags] { return tokenize(*flags); }; });
}

}  // namespace troupe::app
