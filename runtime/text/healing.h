// Token healing: a prompt that ends inside what the model would have written as one token ("http:" before "//") gets
// its last tokens taken back, and the answer's first tokens have to spell their bytes again.
//
// Works on bytes, so also inside a character. Control tokens are neither taken back nor used. While text is to be
// spelled there is always a token that can go on: only text whose every byte has a token of its own is taken back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/vocabulary.h"

namespace troupe {

// How many of the last of `tokens` to take back: the most whose text some single token begins with and goes beyond.
// 0: no token reaches across the end, and nothing is to be healed.
std::size_t tokens_to_heal(const Vocabulary& vocabulary, std::span<const TokenId> tokens);

// The tokens that may come while `rest` (not empty) is still to be spelled, ascending: those that begin with it, and
// those that it begins with.
std::vector<TokenId> healing_tokens(const Vocabulary& vocabulary, std::string_view rest);

}  // namespace troupe
