// LogitsProcessor: a function of the application's that changes one turn's logits before any rule of sampling sees
// them.
//
//     turn.logits_processor = [](std::span<float> logits, std::span<const TokenId> tokens) { logits[7] += 2.0f; };
//
// `logits`: the row as the model gave it, one a token of the vocabulary; -infinity bans. `tokens`: prompt and answer up
// to here. Log-probabilities stay those of the row before the call.
// It runs on the batcher's thread, inside a launch: everyone in the batch waits for it, so it is short, never blocks
// and never calls the host. A step that is repeated after a failure calls it again with the same arguments, so what it
// does depends on them alone. It lives until the turn has ended and no launch reads it.
// What it throws fails this step and no other: the turn ends with `step_failed` and the sentence of the exception.
// It is a function of this process: a Turn that has one cannot cross to another, and is refused when it is serialised.
#pragma once

#include <functional>
#include <span>

#include "runtime/text/token.h"

namespace troupe {

using LogitsProcessor = std::function<void(std::span<float> logits, std::span<const TokenId> tokens)>;

}  // namespace troupe
