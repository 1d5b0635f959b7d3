// Opens a model file as a program would, and runs it.
#pragma once

#include <string>
#include <vector>

#include "runtime/engine.h"

namespace troupe::test {

// An engine on the reference backend with a small pool. A tokenizer that is malformed (not one that is merely not
// supported) is a refusal too.
Result<std::unique_ptr<Engine>> open_model(const std::string& path);

// `count` greedy tokens after the prompt. A launch that fails on the model's numbers ends the answer early.
std::vector<TokenId> greedy(Engine& engine, std::vector<TokenId> prompt, std::size_t count);

}  // namespace troupe::test
