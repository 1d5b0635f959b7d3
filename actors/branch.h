// What a session begins with: nothing, a transcript, or what another session had at one of its tokens.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/records.h"
#include "kernels/result.h"
#include "runtime/conversation.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/session_settings.h"

namespace troupe {

struct Branch {
  SessionSettings settings;
  std::shared_ptr<const Conversation> conversation;
  std::shared_ptr<KvCache> cache;  // for one taker; of the tokens that are seen
  // Of the conversation, so many tokens behind the sinks are not seen (runtime/token_window.h).
  std::int64_t dropped() const { return settings.window.dropped(std::ssize(conversation->tokens())); }

  static Branch open(OpenSession opening, const Vocabulary& vocabulary, const std::shared_ptr<PagePool>& pages);
  // The first `tokens` tokens of a session (-1: all), with the pages that hold them; an error when it has fewer.
  // `cache` is of what is seen of them when `dropped` are not.
  static Result<Branch> fork(const SessionSettings& settings, const Conversation& conversation, const KvCache& cache,
                             std::int64_t dropped, std::int64_t tokens, const Vocabulary& vocabulary);
};

}  // namespace troupe
