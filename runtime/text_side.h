// The text side of a model file: its vocabulary, tokenizer and chat template, as far as this build can use them.
#pragma once

#include <memory>
#include <string>

#include "kernels/result.h"
#include "runtime/load/gguf.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

// A tokenizer or template that this build cannot use leaves its Error; the model still runs by token ids.
struct TextSide {
  std::shared_ptr<const Vocabulary> vocabulary;  // never null
  std::shared_ptr<const Tokenizer> tokenizer;    // null: see tokenizer_error
  Error tokenizer_error;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: see template_error
  Error template_error;
};

// `own_template`: a template's source to use instead of the file's; "": the file's. Templates read the system's clock.
// An Error for a malformed vocabulary, and for an own template that does not parse (it was asked for by name).
Result<TextSide> read_text_side(const Gguf& file, const std::string& own_template);

}  // namespace troupe
