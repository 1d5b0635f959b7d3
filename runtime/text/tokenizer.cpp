#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "runtime/text/printable.h"

namespace troupe {
namespace {

// Pieces repeat: in prose nine of ten are found here. Longer ones and more of them are not worth the memory.
constexpr std::size_t kRememberedBytes = 32;
constexpr std::size_t kRememberedPieces = 16 * 1024;

}  // namespace

struct Tokenizer::Work {
  struct Span {
    std::size_t begin, size;
  };
  Bpe::Scratch scratch;
  std::vector<TokenId> ids;
  std::unordered_map<std::string_view, Span> seen;  // piece -> where its ids stand in `ids`
};

Tokenizer::Tokenizer(std::shared_ptr<const Vocabulary> vocabulary, PreTokenizer pre)
    : vocabulary_(std::move(vocabulary)), pre_(std::move(pre)), bpe_(*vocabulary_), specials_by_first_byte_(256) {
  for (TokenId id : vocabulary_->special_tokens()) {
    specials_by_first_byte_[static_cast<unsigned char>(vocabulary_->bytes(id)[0])].push_back(id);
  }
  for (auto& ids : specials_by_first_byte_) {
    std::ranges::stable_sort(
        ids, [&](TokenId a, TokenId b) { return vocabulary_->bytes(a).size() > vocabulary_->bytes(b).size(); });
  }
}

Result<Tokenizer> Tokenizer::create(std::shared_ptr<const Vocabulary> vocabulary) {
  if (!vocabulary->is_byte_level()) {
    return Error{ErrorCode::unsupported,
                 "the file's tokenizer is '" + printable(vocabulary->model(), 60) +
                     "' (tokenizer.ggml.model); only byte-level BPE ('gpt2') is known here. The "
                     "model can still be used by token ids"};
  }
  auto pre = PreTokenizer::create(vocabulary->pre_tokenizer());
  if (!pre) return pre.error();
  return Tokenizer(std::move(vocabulary), std::move(*pre));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, Specials specials) const {
  const Range whole{0, text.size()};
  return encode_marked(text, std::span(&whole, specials == Specials::parse ? 1 : 0));
}

std::vector<TokenId> Tokenizer::encode_marked(std::string_view text, std::span<const Range> control) const {
  Work work;
  std::size_t stretch = 0;  // where the text since the last control token begins
  for (const Range& range : control) {
    for (std::size_t at = std::max(range.begin, stretch); at < range.end;) {
      const TokenId special = special_at(text.substr(at, range.end - at));
      if (special < 0) {
        ++at;
        continue;
      }
      encode_stretch(text.substr(stretch, at - stretch), work);
      work.ids.push_back(special);
      at += vocabulary_->bytes(special).size();
      stretch = at;
    }
  }
  encode_stretch(text.substr(stretch), work);
  return std::move(work.ids);
}

TokenId Tokenizer::special_at(std::string_view text) const {
  for (TokenId id : specials_by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (text.starts_with(vocabulary_->bytes(id))) return id;
  }
  return -1;
}

void Tokenizer::encode_stretch(std::string_view text, Work& work) const {
  if (text.empty()) return;
  pre_.split(text, [&](std::string_view piece) {
    if (const auto known = work.seen.find(piece); known != work.seen.end()) {
      const auto [begin, size] = known->second;
      for (std::size_t i = 0; i < size; ++i) work.ids.push_back(work.ids[begin + i]);
      return;
    }
    const std::size_t begin = work.ids.size();
    const auto whole = pre_.ignores_merges() ? vocabulary_->find(piece) : std::nullopt;
    if (whole) {
      work.ids.push_back(*whole);
    } else {
      bpe_.encode(piece, work.scratch, work.ids);
    }
    if (piece.size() <= kRememberedBytes && work.seen.size() < kRememberedPieces) {
      work.seen.emplace(piece, Work::Span{begin, work.ids.size() - begin});
    }
  });
}

}  // namespace troupe
