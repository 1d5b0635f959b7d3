// ToldSessions: what a record has told of its sessions: the tokens up to the end of each one's last step, and how it
// chooses. From these a replay makes the recorded steps.
#pragma once

#include <atomic>
#include <memory>
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
  explicit ToldSessions(std::shared_ptr<const Vocabulary> vocabulary) : vocabulary_(std::move(vocabulary)) {}

  // The step as it was sent, but for its pages. `withdrawn` says when it is not wanted any more. An Error when it goes
  // on where its session was not.
  Result<Step> step(const StepArrived& arrived, std::shared_ptr<std::atomic<bool>> withdrawn);
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
    std::shared_ptr<const SamplingParams> sampling;
    std::shared_ptr<SamplerState> state;  // null: nothing is remembered
  };

  static Told told(const StepOrigin& origin);

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unordered_map<SessionId, Told> told_;
};

}  // namespace troupe
