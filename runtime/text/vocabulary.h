// Vocabulary: the tokens of a model: their bytes, their kinds, how they merge, and which of them end an answer.
//
//     auto vocabulary = Vocabulary::create(std::move(data));   // data: what the file says
//     if (!vocabulary) return vocabulary.error();
//     vocabulary->bytes(198);                                  // "\n"
//
// Immutable and shared. An id given to bytes() or kind() must lie in [0, size()): ids from outside are checked by who
// takes them in. A vocabulary that is not byte-level BPE keeps its pieces as they stand and has no merges: a model can
// then be used by token ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/token.h"

namespace troupe {

// The numbers of tokenizer.ggml.token_type (GGUF).
enum class TokenKind : std::uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// What the file says, unchecked.
struct VocabularyData {
  std::string model;  // tokenizer.ggml.model: "gpt2" is byte-level BPE
  std::string pre;    // tokenizer.ggml.pre: which pre-tokenizer
  std::vector<std::string> pieces;
  std::vector<TokenKind> kinds;
  std::vector<std::string> merges;  // "left right", best first
  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  bool add_bos = false;
};

// Two neighbours that may become one token. Its rank is its place among the merges; the lowest goes first.
struct Merge {
  TokenId left, right, joined;
};

class Vocabulary {
 public:
  // `bad_input` for kinds that do not fit the pieces in number, ids outside the vocabulary, and in byte-level BPE for a
  // piece that stands twice and for merges that name a piece that text cannot become (absent, or a control token).
  static Result<Vocabulary> create(VocabularyData data);
  Vocabulary(Vocabulary&&) noexcept = default;
  Vocabulary& operator=(Vocabulary&&) noexcept = default;

  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  bool is_byte_level() const { return data_.model == "gpt2"; }
  const std::string& model() const { return data_.model; }
  const std::string& pre_tokenizer() const { return data_.pre; }
  std::span<const Merge> merges() const { return merges_; }

  // The exact bytes that a token stands for; of a control or user-defined token, its text.
  std::string_view bytes(TokenId id) const { return bytes_[static_cast<std::size_t>(id)]; }
  // Bytes of the longest token.
  std::size_t longest() const {
    std::size_t longest = 0;
    for (const std::string& bytes : bytes_) longest = std::max(longest, bytes.size());
    return longest;
  }
  TokenKind kind(TokenId id) const { return data_.kinds[static_cast<std::size_t>(id)]; }
  bool is_control(TokenId id) const { return kind(id) == TokenKind::control || kind(id) == TokenKind::unknown; }

  std::optional<TokenId> bos() const { return data_.bos; }
  std::optional<TokenId> eos() const { return data_.eos; }
  bool adds_bos() const { return data_.add_bos; }
  // eos, eot, eom, and control tokens whose text is a known end mark ("<|im_end|>", "<|eot_id|>", "<end_of_turn>" …).
  std::span<const TokenId> end_tokens() const { return end_tokens_; }
  bool ends_answer(TokenId id) const;

  // The token that text of exactly these bytes may become by merging. Never a control token.
  std::optional<TokenId> find(std::string_view bytes) const;
  // Tokens that are matched as text of their own where that is allowed: control and user-defined ones.
  std::span<const TokenId> special_tokens() const { return special_tokens_; }

 private:
  explicit Vocabulary(VocabularyData data) : data_(std::move(data)) {}
  Result<void> check_sizes() const;
  Result<void> index_pieces();
  Result<void> read_merges();
  void add(std::size_t place);

  VocabularyData data_;
  std::vector<std::string> bytes_;
  std::unordered_map<std::string_view, TokenId> by_bytes_;  // the keys lie in bytes_: movable, not to be copied
  std::vector<Merge> merges_;
  std::vector<TokenId> end_tokens_;
  std::vector<TokenId> special_tokens_;
};

}  // namespace troupe
