#include "runtime/text/healing.h"

#include <algorithm>

namespace troupe {
namespace {

bool reaches_beyond(const Vocabulary& vocabulary, std::string_view text) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.bytes(id);
    if (bytes.size() > text.size() && bytes.starts_with(text) && !vocabulary.is_control(id)) return true;
  }
  return false;
}

bool can_be_spelled(const Vocabulary& vocabulary, std::string_view text) {
  return std::ranges::all_of(text, [&](const char& byte) { return vocabulary.find({&byte, 1}).has_value(); });
}

}  // namespace

std::size_t tokens_to_heal(const Vocabulary& vocabulary, std::span<const TokenId> tokens) {
  const std::size_t longest = vocabulary.longest();
  std::size_t most = 0;
  std::string text;
  for (std::size_t count = 1; count <= tokens.size(); ++count) {
    const TokenId token = tokens[tokens.size() - count];
    const std::string_view bytes = vocabulary.bytes(token);
    if (vocabulary.is_control(token) || !can_be_spelled(vocabulary, bytes)) break;
    text.insert(0, bytes);
    if (text.size() >= longest) break;
    if (reaches_beyond(vocabulary, text)) most = count;
  }
  return most;
}

std::vector<TokenId> healing_tokens(const Vocabulary& vocabulary, std::string_view rest) {
  std::vector<TokenId> allowed;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.bytes(id);
    if (bytes.empty() || vocabulary.is_control(id)) continue;
    if (bytes.starts_with(rest) || rest.starts_with(bytes)) allowed.push_back(id);
  }
  return allowed;
}

}  // namespace troupe
