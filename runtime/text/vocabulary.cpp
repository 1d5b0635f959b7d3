#include "runtime/text/vocabulary.h"

#include <algorithm>
#include <limits>

#include "runtime/text/byte_level.h"

namespace troupe {
namespace {

constexpr std::string_view kEndMarks[] = {"<|im_end|>", "<|eot_id|>", "<|end|>",        "<end_of_turn>",
                                          "<|eom_id|>", "</s>",       "<|endoftext|>",  "<|end_of_text|>",
                                          "<EOT>",      "<|return|>", "<|end_of_turn|>"};

bool is_end_mark(std::string_view text) {
  return std::ranges::find(kEndMarks, text) != std::end(kEndMarks);
}

Error wrong(const std::string& what) {
  return Error{ErrorCode::bad_input, what};
}

}  // namespace

Result<Vocabulary> Vocabulary::create(VocabularyData data) {
  Vocabulary vocabulary(std::move(data));
  if (auto checked = vocabulary.check_sizes(); !checked) return checked.error();
  if (auto indexed = vocabulary.index_pieces(); !indexed) return indexed.error();
  if (auto read = vocabulary.read_merges(); !read) return read.error();
  // Kept in another form: as text they would be another 4 MB of a vocabulary of 49,152 tokens.
  vocabulary.data_.pieces = {};
  vocabulary.data_.merges = {};
  return vocabulary;
}

Result<void> Vocabulary::check_sizes() const {
  const std::size_t size = data_.pieces.size();
  if (size == 0) return wrong("the vocabulary (tokenizer.ggml.tokens) is empty");
  if (size > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    return wrong("tokenizer.ggml.tokens has " + std::to_string(size) + " entries; a token id has 31 bits");
  }
  if (data_.kinds.size() != size) {
    return wrong("tokenizer.ggml.token_type has " + std::to_string(data_.kinds.size()) + " entries for " +
                 std::to_string(size) + " tokens");
  }
  const std::pair<const char*, std::optional<TokenId>> named[] = {
      {"bos", data_.bos}, {"eos", data_.eos},         {"eot", data_.eot},
      {"eom", data_.eom}, {"unknown", data_.unknown}, {"padding", data_.padding}};
  for (const auto& [which, id] : named) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= size)) {
      return wrong(std::string("tokenizer.ggml.") + which + "_token_id is " + std::to_string(*id) +
                   ", outside the vocabulary of " + std::to_string(size));
    }
  }
  return {};
}

Result<void> Vocabulary::index_pieces() {
  std::unordered_map<std::string_view, std::size_t> first;
  bytes_.reserve(data_.pieces.size());
  for (std::size_t i = 0; i < data_.pieces.size(); ++i) {
    const auto [same, is_new] = first.emplace(data_.pieces[i], i);
    if (!is_new && is_byte_level() && !data_.pieces[i].empty()) {  // several empty ones are seen as padding
      return wrong("tokens " + std::to_string(same->second) + " and " + std::to_string(i) +
                   " of tokenizer.ggml.tokens are the same");
    }
    bytes_.emplace_back();
    add(i);
  }
  for (const auto& id : {data_.eos, data_.eot, data_.eom}) {
    if (id && !ends_answer(*id)) end_tokens_.push_back(*id);
  }
  return {};
}

void Vocabulary::add(std::size_t place) {
  const auto id = static_cast<TokenId>(place);
  const std::string& piece = data_.pieces[place];
  const TokenKind kind = data_.kinds[place];
  const auto decoded = is_byte_level() ? bytes_of_piece(piece) : std::nullopt;
  std::string& bytes = bytes_[place];
  bytes = kind == TokenKind::normal && decoded ? *decoded : piece;
  if (bytes.empty()) return;
  // A user-defined piece is text, not byte-level characters: merges can only mean it where both are the same.
  const bool mergeable = kind == TokenKind::normal || kind == TokenKind::user_defined;
  if (mergeable && decoded && *decoded == bytes) by_bytes_.emplace(bytes, id);
  if (kind == TokenKind::control || kind == TokenKind::user_defined) special_tokens_.push_back(id);
  if (kind == TokenKind::control && is_end_mark(bytes)) end_tokens_.push_back(id);
}

Result<void> Vocabulary::read_merges() {
  if (!is_byte_level()) return {};
  merges_.reserve(data_.merges.size());
  for (const std::string& merge : data_.merges) {
    const std::string_view text = merge;
    const std::size_t gap = text.find(' ');
    const bool whole = gap != std::string_view::npos;
    const auto left = bytes_of_piece(text.substr(0, gap));
    const auto right = whole ? bytes_of_piece(text.substr(gap + 1)) : std::nullopt;
    const auto left_id = left ? find(*left) : std::nullopt;
    const auto right_id = right ? find(*right) : std::nullopt;
    const auto joined = left_id && right_id ? find(*left + *right) : std::nullopt;
    if (!joined) {
      return wrong("entry " + std::to_string(merges_.size()) + " of tokenizer.ggml.merges is not two pieces of the " +
                   "vocabulary that make a third");
    }
    merges_.push_back({*left_id, *right_id, *joined});
  }
  return {};
}

bool Vocabulary::ends_answer(TokenId id) const {
  return std::ranges::find(end_tokens_, id) != end_tokens_.end();
}

std::optional<TokenId> Vocabulary::find(std::string_view bytes) const {
  const auto found = by_bytes_.find(bytes);
  if (found == by_bytes_.end()) return std::nullopt;
  return found->second;
}

}  // namespace troupe
