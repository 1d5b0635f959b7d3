#include "runtime/text_side.h"

#include <utility>

#include "runtime/load/vocabulary_data.h"

namespace troupe {
namespace {

// A template of the wrong type is said to be so: "missing" would send its owner looking for what is there.
Result<std::string> template_source(const Gguf& file) {
  constexpr const char* kKey = "tokenizer.chat_template";
  if (file.find(kKey) != nullptr) return file.get_string(kKey);
  return Error{ErrorCode::unsupported, "the file has no chat template (" + std::string(kKey) +
                                           "); give one with --chat-template, or complete plain text"};
}

Result<std::shared_ptr<const ChatTemplate>> parse(const std::string& source) {
  auto parsed = ChatTemplate::parse(source, system_local_time());
  if (!parsed) return parsed.error();
  return std::shared_ptr<const ChatTemplate>(std::make_shared<ChatTemplate>(std::move(*parsed)));
}

}  // namespace

Result<TextSide> read_text_side(const Gguf& file, const std::string& own_template) {
  auto data = read_vocabulary(file);
  if (!data) return data.error();
  auto vocabulary = Vocabulary::create(std::move(*data));
  if (!vocabulary) return vocabulary.error();
  TextSide side;
  side.vocabulary = std::make_shared<Vocabulary>(std::move(*vocabulary));
  if (auto tokenizer = Tokenizer::create(side.vocabulary)) {
    side.tokenizer = std::make_shared<Tokenizer>(std::move(*tokenizer));
  } else {
    side.tokenizer_error = tokenizer.error();
  }
  const auto source = own_template.empty() ? template_source(file) : Result<std::string>(own_template);
  auto parsed = source ? parse(*source) : Result<std::shared_ptr<const ChatTemplate>>(source.error());
  if (parsed) {
    side.chat_template = std::move(*parsed);
  } else if (!own_template.empty()) {
    return Error{parsed.error().code, "the template of --chat-template: " + parsed.error().message};
  } else {
    side.template_error = parsed.error();
  }
  return side;
}

}  // namespace troupe
