#include "actors/branch.h"

#include <algorithm>
#include <utility>

namespace troupe {

Branch Branch::open(OpenSession opening, const Vocabulary& vocabulary, const std::shared_ptr<PagePool>& pages) {
  auto conversation = opening.past
                          ? Conversation(std::move(opening.past->messages), std::move(opening.past->tokens), vocabulary)
                          : Conversation(std::move(opening.system));
  return {{std::move(opening.key), std::move(opening.sampling), opening.window},
          std::make_shared<const Conversation>(std::move(conversation)),
          std::make_shared<KvCache>(pages)};
}

Result<Branch> Branch::fork(const SessionSettings& settings, const Conversation& conversation, const KvCache& cache,
                            std::int64_t dropped, std::int64_t tokens, const Vocabulary& vocabulary) {
  const std::int64_t all = std::ssize(conversation.tokens()), at = tokens == -1 ? all : tokens;
  if (at < 0 || at > all) {
    return Error{ErrorCode::bad_input,
                 "a fork at token " + std::to_string(tokens) + " of a session that has " + std::to_string(all)};
  }
  Branch branch;
  branch.settings = settings;
  branch.conversation = std::make_shared<const Conversation>(conversation.until(at, vocabulary));
  // Where the branch sees other tokens than the cache is of, the sinks are what they have in common.
  const std::int64_t common =
      branch.dropped() == dropped ? settings.window.seen_before(at, dropped) : std::min(at, settings.window.sinks);
  branch.cache = std::make_shared<KvCache>(cache.fork(std::min(common, cache.length())));
  return branch;
}

}  // namespace troupe
