// What a session begins with: nothing, a transcript, or what another session had at one of its tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/records.h"
#include "kernels/result.h"
#include "runtime/conversation.h"
#include "runtime/kv/kv_cache.h"

namespace troupe {

struct Branch {
  std::string key;
  SamplingParams sampling;
  std::shared_ptr<const Conversation> conversation;
  std::shared_ptr<KvCache> cache;  // for one taker

  static Branch open(OpenSession opening, const Vocabulary& vocabulary, const std::shared_ptr<PagePool>& pages);
  // The first `tokens` tokens of a session (-1: all), with the pages that hold them; an error when it has fewer.
  static Result<Branch> fork(const Conversation& conversation, const KvCache& cache, std::int64_t tokens,
                             const Vocabulary& vocabulary);
};

}  // namespace troupe
