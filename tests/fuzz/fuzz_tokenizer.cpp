// Fuzz target of the text side: a vocabulary, a text and stop strings from the input; then what must hold for all of
// them. Traps (and so ends the run with the input kept) where a promise is broken.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/bpe.h"
#include "runtime/text/byte_level.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/stop_matcher.h"
#include "runtime/text/tokenizer.h"

namespace troupe {
namespace {

void must(bool holds) {
  if (!holds) __builtin_trap();
}

// Reads the input from its front; zeros behind its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  std::string text(std::size_t most) {
    const std::string out(rest_.substr(0, most));
    rest_.remove_prefix(out.size());
    return out;
  }

 private:
  std::string_view rest_;
};

VocabularyData read_vocabulary_data(Input& input) {
  constexpr const char* kPre[] = {"default", "gpt-2", "smollm", "llama-bpe", "qwen2"};
  VocabularyData data;
  data.model = "gpt2";
  data.pre = kPre[input.byte() % std::size(kPre)];
  const unsigned missing = input.byte();  // one of the bytes has no token
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (byte != missing) data.pieces.push_back(piece_of_bytes(std::string(1, static_cast<char>(byte))));
  }
  data.kinds.assign(data.pieces.size(), TokenKind::normal);
  for (int merges = input.byte() % 32; merges > 0; --merges) {
    const std::string left = data.pieces[input.byte() * 7u % data.pieces.size()];
    const std::string right = data.pieces[input.byte() * 7u % data.pieces.size()];
    data.merges.push_back(left + " " + right);
    data.pieces.push_back(left + right);
    data.kinds.push_back(TokenKind::normal);
  }
  for (int specials = input.byte() % 4; specials > 0; --specials) {
    data.pieces.push_back(input.text(1 + input.byte() % 8u));
    data.kinds.push_back(static_cast<TokenKind>(1 + input.byte() % 6));
  }
  // As a file might: something that does not fit.
  if (const unsigned odd = input.byte(); odd % 16 == 1) data.merges.push_back(input.text(odd / 16));
  if (const unsigned odd = input.byte(); odd % 16 == 1) data.eos = static_cast<TokenId>(odd);
  return data;
}

std::string without(std::string text, const Vocabulary& vocabulary) {
  std::erase_if(text, [&](char c) { return !vocabulary.find({&c, 1}); });
  return text;
}

void check_tokenizer(const Tokenizer& tokenizer, const std::string& text) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto plain = tokenizer.encode(text, Tokenizer::Specials::as_text);
  for (TokenId id : plain) must(!vocabulary.is_control(id));
  must(detokenize(vocabulary, plain, ControlTokens::write) == without(text, vocabulary));
  tokenizer.encode(text, Tokenizer::Specials::parse);
  must(tokenizer.encode_marked(text, {}) == plain);
}

void check_blocks(const Vocabulary& vocabulary, const std::string& text, std::size_t block) {
  const Bpe bpe(vocabulary);
  Bpe::Scratch scratch;
  std::vector<TokenId> whole, in_blocks;
  bpe.encode(text, scratch, whole, text.size() + 1);
  bpe.encode(text, scratch, in_blocks, block);
  must(whole == in_blocks);
}

void check_stream(const std::shared_ptr<const Vocabulary>& vocabulary, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(vocabulary, ControlTokens::write);
  std::string streamed;
  for (TokenId id : ids) {
    const std::string part = detokenizer.push(id);
    must(utf8_valid_prefix(part) == part.size());
    streamed += part;
  }
  streamed += detokenizer.flush();
  Utf8Stream stream;
  std::string whole = stream.push(detokenize(*vocabulary, ids, ControlTokens::write));
  whole += stream.flush();
  must(streamed == whole);
}

void check_stops(const std::vector<std::string>& stops, const std::string& text, std::size_t cut) {
  StopMatcher whole(stops), parts(stops);
  const std::string expected = whole.push(text) + whole.flush();
  std::string out = parts.push(std::string_view(text).substr(0, cut));
  if (!parts.match()) out += parts.push(std::string_view(text).substr(cut));
  out += parts.flush();
  must(out == expected && whole.match() == parts.match());
  for (const std::string& stop : stops) must(stop.empty() || out.find(stop) == std::string::npos);
  must(text.starts_with(out) && (out.size() == text.size() || whole.match() == out.size()));
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  Input input(data, size);
  auto read = Vocabulary::create(read_vocabulary_data(input));
  if (!read) return 0;
  const auto vocabulary = std::make_shared<const Vocabulary>(std::move(*read));
  auto tokenizer = Tokenizer::create(vocabulary);
  must(tokenizer.ok());
  std::vector<std::string> stops;
  for (int count = input.byte() % 4; count > 0; --count) stops.push_back(input.text(input.byte() % 8u));
  const std::size_t cut = input.byte(), block = 1 + input.byte();
  const std::string text = input.text(size);
  check_tokenizer(*tokenizer, text);
  check_blocks(*vocabulary, text, block);
  check_stream(vocabulary, (*tokenizer).encode(text, Tokenizer::Specials::parse));
  check_stops(stops, text, std::min(cut, text.size()));
  return 0;
}
