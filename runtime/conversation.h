// Conversation: what a session remembers as text and tokens, and how a turn changes it.
//
// begin() takes a turn's plan, add() the answer's tokens one by one, end() closes the turn with the answer as it was
// given. A turn that failed before its first token is taken back whole: back() restores what stood before begin().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/result.h"
#include "runtime/answer.h"
#include "runtime/prompt_plan.h"

namespace troupe {

class Conversation {
 public:
  // After so many tokens there were so many messages. One at the start, and at the end of each prompt and each answer.
  struct Mark {
    std::int64_t tokens = 0;
    std::size_t messages = 0;
    bool answering = false;  // what follows is the assistant's
  };
  // What there is to keep of one.
  struct Parts {
    std::vector<Message> messages;
    std::vector<TokenId> tokens;
    std::vector<Mark> marks;
    std::string leftover;
  };

  // A new chat; `system` may be empty.
  explicit Conversation(std::string system);
  // One that goes on from a transcript; its tokens are inside the vocabulary.
  Conversation(std::vector<Message> messages, std::vector<TokenId> tokens, const Vocabulary& vocabulary);

  // From what parts() gave; an error when they do not fit each other or the vocabulary.
  static Result<Conversation> from(Parts parts, const Vocabulary& vocabulary);
  Parts parts() const { return {messages_, tokens_, marks_, leftover_}; }

  const std::vector<Message>& messages() const { return messages_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }
  const std::string& text() const { return text_; }

  // The planning job of a chat message, of text, or of tokens that follow.
  PromptJob message_job(Message message) const;
  PromptJob text_job(const std::string& text) const;
  PromptJob token_job(std::vector<TokenId> tokens) const;

  void begin(const PromptJob& job, PromptPlan plan);
  void add(TokenId token) { tokens_.push_back(token); }
  // The answer ended: tokens past answer.keep() go, its text joins the history and, in a chat, the messages.
  void end(const Answer& answer, const Vocabulary& vocabulary);
  void back();

  // What stood when there were only the first `tokens` tokens. An answer that is cut there is an unfinished message; of
  // a message of the user that is cut there only the tokens are left.
  Conversation until(std::int64_t tokens, const Vocabulary& vocabulary) const;

 private:
  PromptJob job(PromptJob::Kind kind) const;
  void mark(bool answering);
  void finish_message(const Answer& answer, const Vocabulary& vocabulary);

  std::vector<Message> messages_;
  std::vector<TokenId> tokens_;
  std::string text_;
  std::vector<Mark> marks_;
  std::string leftover_;  // of a plain answer that a stop string cut inside a token: goes before the next text

  // What back() restores.
  std::vector<Message> old_messages_;
  std::vector<TokenId> old_tokens_;
  std::string old_text_;
  std::vector<Mark> old_marks_;
  std::string old_leftover_;
  bool chat_turn_ = false;
  bool finishes_ = false;  // the turn goes on with an answer that was cut
};

}  // namespace troupe
