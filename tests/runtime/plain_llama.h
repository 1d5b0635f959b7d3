// The llama equations once more, in double, one token after another over dequantized weights, with no cache pages, no
// batch and no backend: what the model and its rope scaling must agree with to float accuracy.
#pragma once

#include <string>
#include <vector>

#include "runtime/text/token.h"

namespace troupe::test {

// Logits after every token, [tokens][vocabulary]. Throws on a file that cannot be read.
std::vector<double> plain_llama_logits(const std::string& path, const std::vector<TokenId>& tokens);

}  // namespace troupe::test
