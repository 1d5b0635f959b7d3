// The session: one conversation, an actor that owns its KV cache, its token history and half a character of text.
//
// A turn walks: idle -> planning (the prompt's tokens) -> queued (pages for the worst case) -> prefilling -> decoding
// (-> parked while its sink has no credit) -> idle. docs/architecture.md has the table of states and messages.
//
// One step is in flight at a time. What a step computes counts when its answer is committed here, matched by epoch:
// answers of a step that was withdrawn (stopped, timed out, sent to a batcher that died) change nothing. When the
// batcher dies the session keeps its cache, waits for the host's next batcher, and sends the step again.
#pragma once

#include <memory>

#include "actors/messages.h"
#include "runtime/text_side.h"

namespace troupe {

// What a session needs to know of its house. All shared, all immutable or thread-safe.
struct SessionHome {
  std::shared_ptr<const TextSide> text;
  std::shared_ptr<PagePool> pages;
  std::shared_ptr<PrefixIndex> prefixes;
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
  std::size_t max_text_bytes = 0;  // no text of more bytes can fit the context
  caf::weak_actor_ptr host;  // a HostControl; weak, since the host lives longer and must not be held by its sessions
  BatcherActor batcher;
  bool may_sleep = false;        // the host has a room for sleepers
  std::int32_t most_drafts = 0;  // SupervisorOptions::drafts
  bool tells_past = false;       // steps say what stands before them, where nobody was told (Step::past)
};

SessionControl spawn_session(caf::actor_system& system, SessionHome home, SessionId id, Branch branch);

}  // namespace troupe
