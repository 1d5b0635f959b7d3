#include "runtime/text/prompt.h"

#include <string>

namespace troupe {

std::vector<TokenId> tokenize_rendered(const Tokenizer& tokenizer, const Rendered& rendered) {
  std::string text;
  std::vector<Tokenizer::Range> control;
  for (const RenderedPart& part : rendered.parts) {
    const std::size_t begin = text.size();
    text += part.text;
    if (part.is_data) continue;
    if (!control.empty() && control.back().end == begin) {
      control.back().end = text.size();
    } else {
      control.push_back({begin, text.size()});
    }
  }
  return tokenizer.encode_marked(text, control);
}

}  // namespace troupe
