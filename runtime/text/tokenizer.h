// Tokenizer: text to token ids, by byte-level BPE. Immutable, shared between threads.
//
// encode() never fails: text may hold any bytes. Control tokens are matched only where allowed (longest first), and the
// text between two of them is tokenized as one stretch. A byte that the vocabulary has no token for is dropped, before
// any merge. Linear in the length of the text.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/bpe.h"
#include "runtime/text/pre_tokenizer.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

class Tokenizer {
 public:
  // `unsupported` when the file's tokenizer is not byte-level BPE, or its pre-tokenizer is not known; the sentence says
  // that the model can still be used by token ids.
  static Result<Tokenizer> create(std::shared_ptr<const Vocabulary> vocabulary);

  enum class Specials { as_text, parse };
  std::vector<TokenId> encode(std::string_view text, Specials specials) const;

  // Control tokens are matched only where they lie wholly inside one of these ranges (ascending, apart).
  struct Range {
    std::size_t begin, end;
  };
  std::vector<TokenId> encode_marked(std::string_view text, std::span<const Range> control) const;

  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  Tokenizer(std::shared_ptr<const Vocabulary> vocabulary, PreTokenizer pre);
  struct Work;
  void encode_stretch(std::string_view text, Work& work) const;
  TokenId special_at(std::string_view text) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  PreTokenizer pre_;
  Bpe bpe_;
  std::vector<std::vector<TokenId>> specials_by_first_byte_;  // each longest first
};

}  // namespace troupe
