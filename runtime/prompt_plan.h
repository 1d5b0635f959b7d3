// plan_prompt: which tokens a new turn adds to a session, as a pure function.
//
// The truth of a session is its token history (the last sampled token included, although no launch has computed it
// yet). history_text is the text that this history stands for, control tokens written out. When the new prompt's text
// begins with it, the history stays as it is and only the rest is tokenized: that is how turn n+1 computes only its new
// tokens, and how an answer that ended without an end mark gets the template's. Where the template rewrites the past
// (it trims, or drops old reasoning), the canonical ids of the whole prompt are used, and the common prefix with the
// history is kept.
//
// Runs on any thread; touches nothing but its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/message.h"
#include "runtime/text_side.h"

namespace troupe {

struct PromptJob {
  enum class Kind : std::uint8_t {
    chat,    // `messages` is the whole conversation, the new message last; rendered through the chat template
    text,    // `text` follows the history as it is; control text in it is only text
    tokens,  // `tokens` follow the history as they are
  };
  Kind kind = Kind::chat;
  std::vector<Message> messages;
  std::string text;
  std::vector<TokenId> tokens;

  bool heal = false;  // of text and tokens: take back what a token may reach across (runtime/text/healing.h)

  std::vector<TokenId> history;
  std::string history_text;

  // What decides where the planning runs: bytes of text that may have to be rendered and tokenized.
  std::size_t bytes() const;
};

struct PromptPlan {
  std::int64_t keep = 0;       // tokens of the history that stay
  std::vector<TokenId> fresh;  // follow them
  std::string text;            // what the history stands for afterwards
  std::string healed{};        // bytes that were taken back from the end: the answer has to begin with them
};

Result<PromptPlan> plan_prompt(const TextSide& side, const PromptJob& job);

}  // namespace troupe
