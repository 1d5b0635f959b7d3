#include "runtime/conversation.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "runtime/text/detokenizer.h"

namespace troupe {

Conversation::Conversation(std::string system) {
  if (!system.empty()) messages_.push_back({"system", std::move(system)});
  mark(false);
}

Conversation::Conversation(std::vector<Message> messages, std::vector<TokenId> tokens, const Vocabulary& vocabulary)
    : messages_(std::move(messages)),
      tokens_(std::move(tokens)),
      text_(detokenize(vocabulary, tokens_, ControlTokens::write)),
      marks_{{0, 0, false}} {
  mark(false);
}

Result<Conversation> Conversation::from(Parts parts, const Vocabulary& vocabulary) {
  for (TokenId token : parts.tokens) {
    if (token >= 0 && token < vocabulary.size()) continue;
    return Error{ErrorCode::bad_input, "it holds token " + std::to_string(token) + ", outside the vocabulary of " +
                                           std::to_string(vocabulary.size())};
  }
  const auto fits = [&](const Mark& mark) {
    return mark.tokens >= 0 && mark.tokens <= std::ssize(parts.tokens) && mark.messages <= parts.messages.size();
  };
  const auto rises = [](const Mark& a, const Mark& b) { return a.tokens <= b.tokens && a.messages <= b.messages; };
  const bool ordered = std::ranges::adjacent_find(parts.marks, std::not_fn(rises)) == parts.marks.end();
  if (parts.marks.empty() || parts.marks.front().tokens != 0 || !ordered || !std::ranges::all_of(parts.marks, fits)) {
    return Error{ErrorCode::bad_input, "its messages and tokens do not fit each other"};
  }
  Conversation all(std::move(parts.messages), std::move(parts.tokens), vocabulary);
  all.marks_ = std::move(parts.marks);
  all.leftover_ = std::move(parts.leftover);
  return all;
}

PromptJob Conversation::job(PromptJob::Kind kind) const {
  PromptJob job;
  job.kind = kind;
  job.history = tokens_;
  job.history_text = text_;
  return job;
}

PromptJob Conversation::message_job(Message message) const {
  PromptJob chat = job(PromptJob::Kind::chat);
  chat.messages = messages_;
  chat.messages.push_back(std::move(message));
  return chat;
}

PromptJob Conversation::text_job(const std::string& text) const {
  PromptJob plain = job(PromptJob::Kind::text);
  plain.text = leftover_ + text;
  return plain;
}

PromptJob Conversation::token_job(std::vector<TokenId> tokens) const {
  PromptJob raw = job(PromptJob::Kind::tokens);
  raw.tokens = std::move(tokens);
  return raw;
}

void Conversation::begin(const PromptJob& job, PromptPlan plan) {
  old_messages_ = messages_;
  old_tokens_ = tokens_;
  old_text_ = text_;
  old_marks_ = marks_;
  chat_turn_ = job.kind == PromptJob::Kind::chat;
  finishes_ = job.kind == PromptJob::Kind::tokens && job.tokens.empty() && marks_.back().answering;
  if (chat_turn_) messages_ = job.messages;
  tokens_.resize(static_cast<std::size_t>(plan.keep));
  tokens_.insert(tokens_.end(), plan.fresh.begin(), plan.fresh.end());
  text_ = std::move(plan.text);
  std::erase_if(marks_, [&](const Mark& one) { return one.tokens > plan.keep; });
  if (!finishes_) mark(chat_turn_);
  old_leftover_ = std::exchange(leftover_, {});
}

void Conversation::end(const Answer& answer, const Vocabulary& vocabulary) {
  const std::vector<TokenId>& tokens = answer.tokens();
  tokens_.resize(tokens_.size() - tokens.size() + answer.keep());
  text_ += detokenize(vocabulary, std::span(tokens).first(answer.keep()), ControlTokens::write);
  leftover_ = chat_turn_ ? std::string() : answer.leftover();  // a chat has it in its message
  if (chat_turn_) messages_.push_back({"assistant", answer.text()});
  if (finishes_) finish_message(answer, vocabulary);
  mark(false);
}

// The message from its first token on: it may have been cut inside a character.
void Conversation::finish_message(const Answer& answer, const Vocabulary& vocabulary) {
  const Mark& asked = marks_.back();
  messages_.resize(asked.messages);
  const auto tokens = std::span(tokens_).subspan(static_cast<std::size_t>(asked.tokens));
  messages_.push_back({"assistant", detokenize(vocabulary, tokens, ControlTokens::skip) + answer.leftover()});
  leftover_.clear();
}

void Conversation::mark(bool answering) {
  marks_.push_back({static_cast<std::int64_t>(tokens_.size()), messages_.size(), answering});
}

Conversation Conversation::until(std::int64_t tokens, const Vocabulary& vocabulary) const {
  const Mark last =
      *std::find_if(marks_.rbegin(), marks_.rend(), [&](const Mark& one) { return one.tokens <= tokens; });
  const auto count = static_cast<std::ptrdiff_t>(tokens);
  std::vector<Message> messages(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(last.messages));
  if (last.answering && tokens > last.tokens) {
    const auto answer = std::span(tokens_).subspan(static_cast<std::size_t>(last.tokens));
    const auto part = answer.first(static_cast<std::size_t>(tokens - last.tokens));
    messages.push_back({"assistant", detokenize(vocabulary, part, ControlTokens::skip)});
  }
  Conversation branch(std::move(messages), {tokens_.begin(), tokens_.begin() + count}, vocabulary);
  branch.marks_ = marks_;
  std::erase_if(branch.marks_, [&](const Mark& one) { return one.tokens > tokens; });
  if (tokens == std::ssize(tokens_)) branch.leftover_ = leftover_;
  return branch;
}

void Conversation::back() {
  messages_ = std::move(old_messages_);
  tokens_ = std::move(old_tokens_);
  text_ = std::move(old_text_);
  marks_ = std::move(old_marks_);
  leftover_ = std::move(old_leftover_);
}

}  // namespace troupe
