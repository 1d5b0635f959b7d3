// Token ids back to text: exact bytes at once, or a stream that never cuts a character.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/text/utf8.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

enum class ControlTokens { write, skip };

// The exact bytes; not necessarily UTF-8.
std::string detokenize(const Vocabulary& vocabulary, std::span<const TokenId> ids, ControlTokens control);

// One per stream: every push gives the characters that are whole by now.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Vocabulary> vocabulary, ControlTokens control)
      : vocabulary_(std::move(vocabulary)), control_(control) {}

  std::string push(TokenId id) { return stream_.push(detokenize(*vocabulary_, {&id, 1}, control_)); }
  std::string flush() { return stream_.flush(); }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  ControlTokens control_;
  Utf8Stream stream_;
};

}  // namespace troupe
