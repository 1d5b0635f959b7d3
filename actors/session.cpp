#include "actors/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "actors/errors.h"
#include "actors/session_state.h"
#include "runtime/planted_fault.h"

namespace troupe {
namespace {

// Prompts longer than this are rendered and tokenized by the text actor: at 5 MB/s, 16 KiB are 3 ms of one thread.
constexpr std::size_t kInlineTextBytes = 16 * 1024;
constexpr std::size_t kWaitingTurns = 4;

}  // namespace

SessionControl::behavior_type SessionState::make_behavior() {
  self_->set_down_handler([this](caf::down_msg& down) { on_sink_down(down.source); });
  return {
      [this](say_atom, Turn& turn) { return on_say(std::move(turn), {}); },
      [this](say_atom, Turn& turn, SinkActor& sink) { return on_say(std::move(turn), std::move(sink)); },
      [this](credit_atom, std::int32_t deltas) { on_credit(deltas); },
      [this](stop_atom) { return on_stop(); },
      [this](transcript_atom) { return on_transcript(); },
      [this](trace_atom) { return trace(); },
      [this](close_atom) { return on_close(); },
      [this](batcher_atom, BatcherActor& batcher) { on_batcher(std::move(batcher)); },
      [this](batcher_atom, caf::error& error) {
        broken_ = from_caf(error);
        if (work_) fail_turn(*broken_);
      },
      [this](fork_atom, std::int64_t tokens) { return on_fork(tokens); },
      [this](sleep_atom) { return on_sleep(); },
      [this](tick_atom, std::uint64_t turn) { on_deadline(turn); },
      [this](drain_atom) {
        draining_ = true;
        if (!work_) self_->quit();
      },
  };
}

// -- turns come in --

caf::result<TurnEnd> SessionState::on_say(Turn turn, SinkActor sink) {
  if (draining_) return to_caf({ErrorCode::shutting_down, "the host is draining and takes no more turns"});
  if (auto checked = turn.validate(home_.vocabulary, home_.context, home_.max_text_bytes); !checked) {
    return to_caf(checked.error());
  }
  if (waiting_.size() >= kWaitingTurns) {
    return to_caf({ErrorCode::busy,
                   std::to_string(kWaitingTurns) + " turns of this session wait already: let one end before the next"});
  }
  auto promise = self_->make_response_promise<TurnEnd>();
  waiting_.push_back({std::move(turn), std::move(sink), promise});
  if (!work_) start_next();
  return promise;
}

void SessionState::start_next() {
  if (waiting_.empty()) return;
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  work_.emplace(std::move(next), home_.text->vocabulary, settings_.sampling, now());
  phases_.enter(SessionPhase::planning, work_->started);
  work_->parked_before = phases_.times(work_->started).parked;
  work_->page_time_before = account_.paid();
  if (work_->sink) self_->monitor(work_->sink);
  ++turn_;
  if (broken_) return fail_turn(*broken_);
  plan();
}

// -- planning: which tokens --

void SessionState::plan() {
  work_->job = job_of(work_->turn, conversation_);
  if (work_->job.bytes() <= kInlineTextBytes) return on_plan(plan_prompt(*home_.text, work_->job));
  ask_host<PromptPlan>(
      work_->remaining(now()), [this](PromptPlan& plan) { on_plan(std::move(plan)); }, plan_atom_v, work_->job);
}

void SessionState::on_plan(Result<PromptPlan> plan) {
  if (!plan) return fail_turn(plan.error());
  const std::int64_t total = plan->keep + static_cast<std::int64_t>(plan->fresh.size());
  if (total == 0) return fail_turn({ErrorCode::bad_input, "the prompt is empty: there is no token to start from"});
  if (total >= home_.context && !settings_.window.endless()) {
    return fail_turn({ErrorCode::context_length, "the prompt has " + std::to_string(total) +
                                                     " tokens; the context holds " + std::to_string(home_.context) +
                                                     ", and the answer needs at least one"});
  }
  work_->planned(*plan);
  cache_.truncate(std::min(cache_.length(), settings_.window.seen_before(plan->keep, dropped_)));
  conversation_.begin(work_->job, std::move(*plan));
  follow_window();
  // The last token is computed again when all of it is cached: somebody has to produce the next one.
  cache_.truncate(std::min(cache_.length(), seen() - 1));
  work_->began(total, cache_.length());
  sampler_ = work_->first_sampler_state(conversation_.tokens());
  reserve();
}

// -- steps --

// Where the window has moved on, what it leaves is computed anew, and may need other pages than were shared.
void SessionState::step() {
  if (follow_window()) return reserve();
  send_step();
}

void SessionState::send_step() {
  if (phases_.phase() != SessionPhase::decoding) {
    phases_.enter(work_->answer.tokens().empty() ? SessionPhase::prefilling : SessionPhase::decoding, now());
  }
  Step step;
  step.session = id_;
  step.key = settings_.key;
  step.background = work_->turn.background;
  step.tokens = visible(cache_.length());
  step.cache = cache_.lend();
  step.sampling = work_->sampling;
  step.state = sampler_;
  step.no_end_for = work_->answer.no_end_for(length() - work_->prompt);
  step.logprobs = work_->turn.logprobs;
  if (home_.tells_past && !std::exchange(told_, true)) step.past = past();
  work_->computed += static_cast<std::int64_t>(step.tokens.size());
  if (home_.most_drafts > 0 && step.tokens.size() == 1 && !leads_) add_drafts(step);
  in_flight_ = true;
  const auto epoch = ++epoch_;  // arguments are evaluated in any order
  self_->request(home_.batcher, caf::infinite, step_atom_v, std::move(step))
      .then(
          [this, epoch](StepTokens& drawn) {
            if (epoch == epoch_ || (in_flight_ && planted(PlantedFault::old_epoch_accepted))) on_tokens(drawn);
          },
          [this, epoch](caf::error& error) {
            if (epoch == epoch_) on_step_error(error);
          });
}

// Guesses of the next tokens, no more than could still be tokens of the answer, of what is seen and of its pages.
void SessionState::add_drafts(Step& step) {
  const std::int64_t room = most_seen() - seen();
  const std::int64_t left = work_->tokens_left(room, length() - work_->prompt);
  const std::int64_t most = std::min({std::int64_t{home_.most_drafts}, room - 1, left - 1, cache_.capacity() - seen()});
  step.draft_room = static_cast<std::int32_t>(std::max<std::int64_t>(most, 0));
  for (TokenId token : lookup_.guess(conversation_.tokens(), most)) {
    if (work_->answer.is_end(token)) break;  // nothing follows it
    step.tokens.push_back(token);
    ++step.drafts;
  }
  step.draft_odds = lookup_.odds();
}

void SessionState::token_came(const Sampled& sampled) {
  conversation_.add(sampled.token);
  if (sampler_) sampler_ = work_->accepted(std::move(sampler_), sampled);
  work_->token_came(now());
}

void SessionState::on_tokens(StepTokens& drawn) {
  in_flight_ = false;
  // The rows of right guesses are those of the tokens themselves.
  const bool all = planted(PlantedFault::wrong_guess_kept);
  cache_.commit(seen() + (all ? drawn.verified : std::ssize(drawn.after)));
  if (leads_ || work_->answer.tokens().empty()) publish_prompt();
  lookup_.learn(drawn.first.token, drawn.after);
  work_->computed += drawn.verified;
  work_->drafts += drawn.verified;
  Sampled* sampled = &drawn.first;
  for (Sampled& next : drawn.after) {
    token_came(*sampled);
    work_->take(*sampled);
    // A stop string: what was computed behind it does not count.
    if (work_->answer.reason() != FinishReason::none) return end_turn(work_->answer.reason());
    sampled = &next;
    ++work_->right_drafts;
  }
  on_last_token(*sampled);
}

// The newest of a step's tokens: it decides whether there is a next step.
void SessionState::on_last_token(Sampled& sampled) {
  token_came(sampled);
  phases_.enter(SessionPhase::decoding, work_->last_token);
  const bool late = work_->last_token >= work_->deadline;
  const bool full = length() >= home_.context && !settings_.window.endless();
  const bool over = late || full || work_->answer.ends_with(sampled.token);
  // The next step goes before the text is looked at, unless the text may end the answer or use up the last credit.
  const bool ahead = !over && work_->answer.decided_by_token() && work_->may_run_ahead();
  if (ahead) step();
  work_->take(sampled);
  emit(work_->release());
  if (work_->answer.reason() != FinishReason::none) return end_turn(work_->answer.reason());
  if (full) return end_turn(FinishReason::length);
  if (late) return fail_turn({ErrorCode::timed_out, "the turn's time limit passed during the answer"});
  if (!ahead) go_on();
}

void SessionState::go_on() {
  if (work_->has_credit() || planted(PlantedFault::credit_ignored)) return step();
  phases_.enter(SessionPhase::parked, now());
  leave();
  // Nothing else comes to a parked turn: one look at its deadline, however often it parks.
  if (watched_turn_ == turn_) return;
  watched_turn_ = turn_;
  // Weak: a timer must not keep a session alive that its owner has dropped.
  self_->clock().schedule_message(work_->deadline, caf::weak_actor_ptr(self_->ctrl()),
                                  caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, tick_atom_v, turn_));
}

void SessionState::on_deadline(std::uint64_t turn) {
  if (!current(turn) || phases_.phase() != SessionPhase::parked) return;
  fail_turn({ErrorCode::timed_out, "the turn's time limit passed while its reader took nothing"});
}

// An answer in our own error category is about this step; any other, or a failed engine, means that the batcher died
// with it.
void SessionState::on_step_error(const caf::error& error) {
  in_flight_ = false;
  cache_.revoke();
  const bool step_failed = error.category() == caf::type_id_v<ErrorCode> && error != ErrorCode::engine_failed;
  if (step_failed) return fail_turn(from_caf(error));
  lost_ = !planted(PlantedFault::step_lost);
}

void SessionState::on_batcher(BatcherActor batcher) {
  home_.batcher = std::move(batcher);
  broken_.reset();
  told_ = false;  // a parked turn's next step tells it
  if (!in_flight_ && !lost_) return;
  lost_ = false;
  cache_.revoke();
  work_->computed -= seen() - cache_.length();
  send_step();
}

// -- text goes out --

void SessionState::emit(std::optional<TextDelta> delta) {
  if (!delta) return;
  delta->dropped_tokens = dropped_;
  self_->send(work_->sink, std::move(*delta));
}

void SessionState::on_credit(std::int32_t deltas) {
  if (!work_ || deltas <= 0) return;
  work_->credit = std::min(work_->credit, std::numeric_limits<std::int32_t>::max() - deltas) + deltas;
  if (phases_.phase() == SessionPhase::parked) step();
}

void SessionState::on_sink_down(const caf::actor_addr& source) {
  std::erase_if(waiting_, [&](const WaitingTurn& turn) { return turn.sink && turn.sink.address() == source; });
  if (work_ && work_->sink && work_->sink.address() == source) end_turn(FinishReason::cancelled);
}

// -- turns end --

void SessionState::end_turn(FinishReason reason) {
  emit(work_->close(reason));
  TurnEnd end = work_->summary();
  end.parked = phases_.times(now()).parked - work_->parked_before;
  end.page_time = account_.paid() - work_->page_time_before;
  auto promise = work_->promise;
  put_away();
  end.dropped_tokens = dropped_;
  promise.deliver(std::move(end));
  after_turn();
}

void SessionState::fail_turn(const Error& error) {
  work_->close(FinishReason::cancelled);
  auto promise = work_->promise;
  put_away();
  promise.deliver(to_caf(error));
  after_turn();
}

// The history keeps what was said and answered; a turn that never got a token is taken back whole.
void SessionState::put_away() {
  const bool was_parked_or_running = work_->begun;
  cache_.revoke();
  ++epoch_;
  in_flight_ = lost_ = leads_ = false;
  if (work_->begun) {
    if (work_->answer.tokens().empty()) {
      // What follows is of the prompt that is taken back.
      cache_.truncate(std::min(cache_.length(), settings_.window.seen_before(work_->kept, dropped_)));
      conversation_.back();
    } else {
      conversation_.end(work_->answer, *home_.text->vocabulary);
    }
  }
  follow_window();
  cache_.truncate(std::min(cache_.length(), seen()));
  if (!planted(PlantedFault::pages_kept)) cache_.shrink_to_fit(cache_.length());
  if (was_parked_or_running) publish();
  if (work_->sink) self_->demonitor(work_->sink);
  work_->add_to(past_);
  ++past_.turns;
  work_.reset();
  rest();
  if (was_parked_or_running) leave();
  tell_freed(turn_);
}

void SessionState::after_turn() {
  for (auto& promise : std::exchange(transcripts_, {})) promise.deliver(transcript());
  if (!work_) start_next();
  if (!work_ && draining_) self_->quit();
}

caf::result<Transcript> SessionState::on_transcript() {
  if (!work_) return transcript();
  auto promise = self_->make_response_promise<Transcript>();
  transcripts_.push_back(promise);
  return promise;
}

SessionPhase SessionState::on_stop() {
  const SessionPhase met = phases_.phase();
  if (work_) end_turn(FinishReason::cancelled);
  return met;
}

SessionPhase SessionState::on_close() {
  const SessionPhase met = phases_.phase();
  auto waiting = std::exchange(waiting_, {});
  if (work_) end_turn(FinishReason::cancelled);
  for (auto& turn : waiting) turn.promise.deliver(to_caf({ErrorCode::cancelled, "the session was closed"}));
  self_->quit();
  return met;
}

SessionControl spawn_session(caf::actor_system& system, SessionHome home, SessionId id, Branch branch) {
  return system.spawn<SessionControl::stateful_impl<SessionState>>(std::move(home), id, std::move(branch));
}

}  // namespace troupe
