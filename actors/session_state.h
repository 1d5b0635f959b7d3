// What a session actor holds and decides. The life of its turns is in session.cpp; what happens to its pages (the wait
// for them, sleep, fork, what others may find) in session_pages.cpp; what it tells of itself in session_trace.cpp.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/branch.h"
#include "actors/errors.h"
#include "actors/phase_clock.h"
#include "actors/session.h"
#include "actors/turn_work.h"
#include "runtime/conversation.h"
#include "runtime/kv/page_account.h"
#include "runtime/prompt_lookup.h"

namespace troupe {

class SessionState {
 public:
  static constexpr const char* name = "troupe.session";

  SessionState(SessionControl::pointer self, SessionHome home, SessionId id, Branch branch)
      : self_(self),
        home_(std::move(home)),
        id_(id),
        settings_(std::move(branch.settings)),
        conversation_(*branch.conversation),
        cache_(std::move(*branch.cache)),
        dropped_(settings_.window.dropped(length())),
        account_(home_.pages),
        born_(now()),
        phases_(born_) {
    cache_.charge(account_.payer());  // for what was read from a file
    rest();
  }
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;
  ~SessionState();

  SessionControl::behavior_type make_behavior();

 private:
  // -- turns: session.cpp --
  caf::result<TurnEnd> on_say(Turn turn, SinkActor sink);
  void start_next();
  void plan();
  void on_plan(Result<PromptPlan> plan);
  void step();
  void send_step();
  void add_drafts(Step& step);
  void on_tokens(StepTokens& drawn);
  void token_came(const Sampled& sampled);
  void on_last_token(Sampled& sampled);
  void go_on();
  void on_deadline(std::uint64_t turn);
  void on_step_error(const caf::error& error);
  void on_batcher(BatcherActor batcher);
  void leave() { self_->send(home_.batcher, leave_atom_v, id_); }
  void emit(std::optional<TextDelta> delta);
  void on_credit(std::int32_t deltas);
  void on_sink_down(const caf::actor_addr& source);
  bool current(std::uint64_t turn) const { return work_ && turn_ == turn; }
  TimePoint now() const { return self_->clock().now(); }
  void end_turn(FinishReason reason);
  void fail_turn(const Error& error);
  void put_away();
  void after_turn();
  caf::result<Transcript> on_transcript();
  Transcript transcript() const { return {conversation_.messages(), conversation_.tokens()}; }
  SessionPhase on_stop();
  SessionPhase on_close();

  // -- pages: session_pages.cpp --
  // Tokens of the history, and those of them that the cache is of, or is to hold with the next step.
  std::int64_t length() const { return std::ssize(conversation_.tokens()); }
  std::int64_t seen() const { return length() - dropped_; }
  // Tokens that may be seen at most.
  std::int64_t most_seen() const { return settings_.window.endless() ? settings_.window.tokens : home_.context; }
  std::vector<TokenId> visible(std::int64_t from) const {
    return settings_.window.visible(conversation_.tokens(), from);
  }
  std::shared_ptr<const std::vector<TokenId>> past() const;
  bool follow_window();
  void reserve();
  std::shared_ptr<KvCache> hand_over();
  void on_grant(KvCache cache);
  void publish();
  void publish_prompt();
  void tell_freed(std::uint64_t turn);
  caf::result<bool> on_sleep();
  bool fall_asleep(std::uint64_t turn, std::shared_ptr<const SleepingKv> copy);
  caf::result<Branch> on_fork(std::int64_t tokens) const;

  // -- what it tells of itself: session_trace.cpp --
  void rest();
  SessionTrace trace() const;

  // Asks the host something for the turn in work. An answer that comes after the turn's end gives back what it brought.
  template <class Answer, class Take, class... Message>
  void ask_host(caf::timespan limit, Take take, Message&&... message) {
    auto host = caf::actor_cast<HostControl>(home_.host);
    if (!host) return fail_turn({ErrorCode::shutting_down, "the host is gone"});
    self_->request(host, limit, std::forward<Message>(message)...)
        .then(
            [this, turn = turn_, take = std::move(take)](Answer& answer) {
              if (current(turn)) return take(answer);
              answer = Answer{};
              tell_freed(turn);
            },
            [this, turn = turn_](caf::error& error) {
              if (current(turn)) fail_turn(from_caf(error));
            });
  }

  SessionControl::pointer self_;
  SessionHome home_;
  SessionId id_;
  SessionSettings settings_;
  Conversation conversation_;
  KvCache cache_;                          // of what is seen of the conversation
  std::int64_t dropped_ = 0;               // what is not (runtime/token_window.h)
  PageAccount account_;                    // pays for them
  std::shared_ptr<SamplerState> sampler_;  // of the turn in work; null while nothing is remembered
  PromptLookup lookup_;

  std::deque<WaitingTurn> waiting_;
  std::optional<TurnWork> work_;
  std::vector<caf::typed_response_promise<Transcript>> transcripts_;
  std::optional<Error> broken_;     // the host gave the engine up
  std::uint64_t turn_ = 0;          // number of the turn in work
  std::uint64_t watched_turn_ = 0;  // whose deadline is looked at
  std::uint64_t epoch_ = 0;         // number of the newest step; answers to older ones are dropped
  bool in_flight_ = false;          // a step is with the batcher
  bool told_ = false;               // the batcher knows what stands before the next step
  bool lost_ = false;               // its batcher died; the next batcher gets it again
  bool leads_ = false;              // others may wait for what its next step computes
  bool draining_ = false;           // ends with the last turn in line

  TimePoint born_;
  PhaseClock phases_;
  SessionTrace past_;  // tokens and turns of those that have ended
};

}  // namespace troupe
