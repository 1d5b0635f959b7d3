// ToldSessions: what a record has told of its sessions: the tokens up to the end of each one's last step, and how it
// chooses. From these a replay makes the recorded steps.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/result.h"
#include "runtime/record/record.h"
#include "runtime/step_queue.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

class ToldSessions {
 public:
  // Of an engine whose sequences hold `context` tokens.
  ToldSessions(std::shared_ptr<const Vocabulary> vocabulary, std::int64_t context)
      : vocabulary_(std::move(vocabulary)), context_(context) {}

  // The step as it was sent, but for its pages. `withdrawn` says when it is not wanted any more. An Error when it goes
  // on where its session was not.
  Result<Step> step(const StepArrived& arrived, std::shared_ptr<std::atomic<bool>> withdrawn);
  // The session's last step, of one token, has these guesses now. An Error where there was none.
  Result<void> guessed(const StepGuessed& guessed);
  // The tokens that stand before a slice of a session's last step; an Error when it is of another.
  Result<std::span<const TokenId>> past(const Slice& slice) const;
  // A logits processor had its word in what the session's steps gave.
  bool processed(SessionId session) const { return told_.at(session).processed; }
  // What a step gave, when nobody reads it any more: the session's sampler remembers it.
  void gave(SessionId session, const SliceOutcome& outcome);

 private:
  struct Told {
    std::string key;
    bool background = false;
    bool processed = false;
    std::vector<TokenId> tokens;
    std::optional<std::size_t> decodes_at{};  // the position of the last step's one known token, where it has no more
    std::shared_ptr<const SamplingParams> sampling;
    std::shared_ptr<SamplerState> state;  // null: nothing is remembered
  };

  static Told told(const StepOrigin& origin);

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::int64_t context_;
  std::unordered_map<SessionId, Told> told_;
};

}  // namespace troupe
