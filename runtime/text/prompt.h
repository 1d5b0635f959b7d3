// A rendered prompt to token ids.
#pragma once

#include <vector>

#include "runtime/text/chat_template.h"
#include "runtime/text/tokenizer.h"

namespace troupe {

// Control tokens are matched only in what the template wrote; the text between two of them is tokenized as one stretch,
// whoever wrote it. So control text in a message is only text, and a word that the template began and a message ends is
// cut as the model knows it.
std::vector<TokenId> tokenize_rendered(const Tokenizer& tokenizer, const Rendered& rendered);

}  // namespace troupe
