#include "runtime/text/detokenizer.h"

namespace troupe {

std::string detokenize(const Vocabulary& vocabulary, std::span<const TokenId> ids, ControlTokens control) {
  std::string out;
  for (TokenId id : ids) {
    if (control == ControlTokens::skip && vocabulary.is_control(id)) continue;
    out += vocabulary.bytes(id);
  }
  return out;
}

}  // namespace troupe
