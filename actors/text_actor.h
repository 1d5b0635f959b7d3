// The text actor: renders and tokenizes long prompts on a thread of its own, so that no scheduler thread is held by one
// (8 MiB of text are seconds of work) and the sessions beside it go on.
#pragma once

#include <memory>

#include "actors/messages.h"
#include "runtime/text_side.h"

namespace troupe {

TextActor spawn_text_actor(caf::actor_system& system, std::shared_ptr<const TextSide> text, bool detached);

}  // namespace troupe
