// TurnWork: the turn that a session has in work: its request, its growing answer, its credit and its clock.
//
// Plain bookkeeping of one turn, so that the session actor (actors/session.cpp) only decides and sends. Time comes in
// as a parameter.
#pragma once

#include <algorithm>
#include <caf/all.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages.h"
#include "runtime/answer.h"
#include "runtime/conversation.h"
#include "runtime/time.h"

namespace troupe {

// A turn in line, with who asked for it and who reads it (sink may be invalid: nobody streams).
struct WaitingTurn {
  Turn turn;
  SinkActor sink;
  caf::typed_response_promise<TurnEnd> promise;
};

// What a turn asks of the text side.
PromptJob job_of(const Turn& turn, const Conversation& conversation);

struct TurnWork {
  TurnWork(WaitingTurn waiting, std::shared_ptr<const Vocabulary> vocabulary, const SamplingParams& session_sampling,
           TimePoint now);

  // Which tokens the prompt has is known; then how many: `total` tokens, `cached` of them in the cache.
  void planned(const PromptPlan& plan);
  void began(std::int64_t total, std::int64_t cached);
  // The first step may start, with so many tokens in the cache.
  void was_admitted(std::int64_t cached, TimePoint now);
  // Tokens that the answer may still get when it has `said` so many; `most` where nothing limits it.
  std::int64_t tokens_left(std::int64_t most, std::int64_t said) const;
  // What the sampler remembers before the first token (null: nothing), and after each (runtime/sampling/memory.h).
  std::shared_ptr<SamplerState> first_sampler_state(const std::vector<TokenId>& prompt) const;
  std::shared_ptr<SamplerState> accepted(std::shared_ptr<SamplerState> state, const Sampled& sampled) const;

  void token_came(TimePoint now);
  // The sampled token joins the answer.
  void take(Sampled& sampled);
  // The delta to send now, if the sink is there and something is to be told.
  std::optional<TextDelta> release();
  // The answer ends: what was held back, as a last delta.
  std::optional<TextDelta> close(FinishReason reason);
  TurnEnd summary() const;
  void add_to(SessionTrace& trace) const;

  // Until the deadline; a little when it has passed.
  caf::timespan remaining(TimePoint now) const {
    return std::max<caf::timespan>(deadline - now, std::chrono::milliseconds(1));
  }
  bool has_credit() const { return !sink || credit > 0; }
  // One delta may still go out for the token in hand, and the next one needs a credit of its own.
  bool may_run_ahead() const { return !sink || credit > 1; }

  Turn turn;
  SinkActor sink;
  caf::typed_response_promise<TurnEnd> promise;
  std::shared_ptr<const SamplingParams> sampling;
  Answer answer;
  PromptJob job;
  std::int32_t credit = 0;
  std::int64_t kept = 0;  // tokens of the history that this turn's prompt begins with
  std::int64_t prompt = 0;
  std::int64_t cached = 0;
  std::int64_t computed = 0;
  std::int64_t drafts = 0, right_drafts = 0;
  bool begun = false;  // the conversation holds this turn's prompt
  TimePoint started;
  TimePoint admitted = started;
  TimePoint first_token = started;
  TimePoint last_token = started;
  TimePoint deadline;
  std::chrono::nanoseconds parked_before{0};  // this turn, of the session
  PageTime page_time_before;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::string healed_;
  TextDelta unsent_;               // tokens whose text is still held, or that came with the last step
  std::vector<Sampled> logprobs_;  // of the whole answer, when asked for
};

}  // namespace troupe
