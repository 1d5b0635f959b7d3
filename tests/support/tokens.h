// joined: one list of tokens behind another, as a history grows.
#pragma once

#include <span>
#include <vector>

#include "runtime/text/token.h"

namespace troupe::test {

inline std::vector<TokenId> joined(std::span<const TokenId> a, std::span<const TokenId> b) {
  std::vector<TokenId> both(a.begin(), a.end());
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

}  // namespace troupe::test
