// PreTokenizer: cuts text into the pieces within which BPE may merge. Regular expressions by PCRE2 with JIT.
//
// Known by their GGUF names (tokenizer.ggml.pre): "default" (also a file without the entry) and "gpt-2" (Radford et al.
// 2019), "smollm" (every digit alone, then GPT-2's pattern on what lies between), "llama-bpe" (Llama 3) and "qwen2".
// Text is taken as it is: no Unicode normalization. Whitespace is Unicode's White_Space; letters and numbers are those
// of the PCRE2 library's Unicode version. Bytes that are not part of a well-formed UTF-8 character make pieces of their
// own, each run of them one. Linear in the length of the text.
// Immutable and thread-safe; each call brings its own match state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/result.h"

namespace troupe {

class PreTokenizer {
 public:
  // `unsupported` for a name that is not known; the sentence lists those that are.
  static Result<PreTokenizer> create(const std::string& name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Calls `piece` with consecutive pieces, none empty, that together are the text.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;
  // A piece that is a token as a whole is taken as it is, whatever the merges make of it (Llama 3's rule).
  bool ignores_merges() const;

 private:
  struct Pattern;
  explicit PreTokenizer(std::unique_ptr<Pattern> pattern);
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace troupe
