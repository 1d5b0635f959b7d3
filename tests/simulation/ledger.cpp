#include "tests/simulation/ledger.h"

#include <algorithm>
#include <utility>

#include "kernels/kv_layout.h"
#include "tests/simulation/hash_model.h"
#include "tests/support/tokens.h"

namespace troupe::test {
namespace {

bool begins(std::span<const TokenId> tokens, std::span<const TokenId> with) {
  return tokens.size() >= with.size() && std::ranges::equal(tokens.first(with.size()), with);
}

}  // namespace

Ledger::Ledger(std::shared_ptr<const Trouble> trouble, Report report)
    : trouble_(std::move(trouble)), report_(std::move(report)) {}

void Ledger::begins_as_fork_of(const Ledger& origin, std::span<const TokenId> base, std::size_t first_turn,
                               std::vector<TokenId> transcript) {
  const std::span<const TokenId> all = transcript;
  if (!begins(all, base) || !origin.explained(all.subspan(base.size()), base, first_turn)) {
    report_("a fork has tokens that its origin never had");
  }
  history_ = std::move(transcript);
}

// Whether `rest` is what turns from `turn` on may have added to `so_far`: each was taken back, or its prompt and a
// beginning of its answer stand there. Where an answer's next token is by chance that of the next prompt too, one of
// the two readings holds.
bool Ledger::explained(std::span<const TokenId> rest, std::span<const TokenId> so_far, std::size_t turn) const {
  if (rest.empty()) return true;
  if (turn == turns_.size()) return false;
  const Turn& asked = turns_[turn].turn;
  if (asked.kind == Turn::Kind::tokens && begins(rest, asked.tokens)) {
    const auto behind = rest.subspan(asked.tokens.size());
    const auto answer = true_answer(so_far, asked, static_cast<std::size_t>(asked.limits.max_tokens));
    for (auto said = std::ranges::mismatch(answer, behind).in1 - answer.begin(); said >= 0; --said) {
      const auto count = static_cast<std::size_t>(said);
      const auto then = joined(joined(so_far, asked.tokens), std::span(answer).first(count));
      if (explained(behind.subspan(count), then, turn + 1)) return true;
    }
  }
  return explained(rest, so_far, turn + 1);
}

std::size_t Ledger::asked(Turn turn, bool streams, TimePoint now) {
  const TimePoint deadline = now + turn.time_limit;
  turns_.push_back({std::move(turn), streams, deadline, trouble_->text_actors});
  return turns_.size() - 1;
}

std::size_t Ledger::open_turns() const {
  return static_cast<std::size_t>(std::ranges::count_if(turns_, [](const Asked& asked) { return !asked.ended; }));
}

std::size_t Ledger::first_open() const {
  return static_cast<std::size_t>(std::ranges::find_if(turns_, [](const Asked& one) { return !one.ended; }) -
                                  turns_.begin());
}

const std::vector<TokenId>& Ledger::truth_of(Asked& asked) {
  if (asked.truth.empty()) {
    asked.truth = true_answer(history_, asked.turn, static_cast<std::size_t>(asked.turn.limits.max_tokens));
  }
  return asked.truth;
}

void Ledger::came(const TextDelta& delta) {
  const std::size_t at = first_open();
  if (at == turns_.size() || !turns_[at].streams) return report_("text came that belongs to no turn");
  Asked& asked = turns_[at];
  asked.came.insert(asked.came.end(), delta.tokens.begin(), delta.tokens.end());
  if (!begins(truth_of(asked), asked.came)) report_("text came that is not the truth");
  // The last piece of an answer costs no credit.
  if (++asked.deltas > asked.turn.credit + late_credit_ + credit_ + 1) report_("more text came than credit was given");
}

void Ledger::ended(std::size_t turn, const TurnEnd& end) {
  Asked& asked = turns_[turn];
  if (asked.ended) return report_("a turn ended twice");
  if (turn != first_open()) report_("a turn was answered before those in front of it");
  if (end.reason == FinishReason::cancelled && !over() && stops_-- == 0) {
    report_("a turn was cancelled that nobody stopped");
  }
  check_answer(asked, end);
  check_counts(asked, end);
  close_turn(asked, end.tokens);
}

void Ledger::check_answer(Asked& asked, const TurnEnd& end) {
  const std::vector<TokenId>& truth = truth_of(asked);
  if (!begins(truth, end.tokens)) report_("an answer is not the truth");
  if (asked.streams && asked.came != end.tokens) report_("the pieces that came do not make the answer");
  if (end.reason != FinishReason::cancelled && end.tokens != truth) report_("an answer is too short");
}

// A step that was lost with its batcher is computed again, but counted once.
void Ledger::check_counts(const Asked& asked, const TurnEnd& end) {
  if (end.reason == FinishReason::cancelled) return;
  const auto prompt = std::ssize(history_) + std::ssize(asked.turn.tokens);
  if (end.prompt_tokens != prompt) report_("prompt_tokens is " + std::to_string(end.prompt_tokens));
  if (end.cached_tokens >= prompt) report_("no token of the prompt was computed");
  const std::int64_t wrong_guesses = end.draft_tokens - end.right_drafts;
  if (end.computed_tokens != prompt - end.cached_tokens + std::ssize(end.tokens) - 1 + wrong_guesses) {
    report_("computed_tokens is " + std::to_string(end.computed_tokens) + " of a prompt of " + std::to_string(prompt) +
            " tokens, " + std::to_string(end.cached_tokens) + " of them cached, and " +
            std::to_string(end.tokens.size()) + " of an answer, with " + std::to_string(wrong_guesses) +
            " wrong guesses");
  }
}

void Ledger::failed(std::size_t turn, const Error& error, TimePoint now) {
  Asked& asked = turns_[turn];
  if (asked.ended) return report_("a turn failed that had ended");
  if (!excused(asked, error, now)) report_("a turn failed without a cause: " + error.message);
  if (turn != first_open()) {  // it never came to its turn
    asked.ended = true;
    return;
  }
  if (!asked.streams) sure_ = false;
  close_turn(asked, asked.came);
}

bool Ledger::excused(const Asked& asked, const Error& error, TimePoint now) const {
  if (killed_) return true;
  const std::int64_t most = std::ssize(history_) + std::ssize(asked.turn.tokens) + asked.turn.limits.max_tokens;
  switch (error.code) {
    case ErrorCode::busy:
      return open_turns() > 4;
    case ErrorCode::cancelled:
      return closed_;
    case ErrorCode::timed_out:
      return now >= asked.deadline;
    case ErrorCode::step_failed:
      return asked.doomed;
    case ErrorCode::engine_failed:
      // What comes to a session that was closed, or went when its house drained, finds nobody.
      return trouble_->engine_failed || trouble_->draining || closed_ ||
             (asked.turn.kind == Turn::Kind::text &&
              (trouble_->text_actor_dead || trouble_->text_actors > asked.text_actors));
    case ErrorCode::shutting_down:
      return trouble_->draining;
    case ErrorCode::out_of_memory:
      return pages_for(most) > trouble_->pages;
    case ErrorCode::context_length:
      return asked.turn.kind == Turn::Kind::text;
    default:
      return false;
  }
}

// A turn that never got a token was taken back whole.
void Ledger::close_turn(Asked& asked, std::span<const TokenId> answer) {
  asked.ended = true;
  late_credit_ = std::exchange(credit_, 0);
  if (!answer.empty()) history_ = joined(joined(history_, asked.turn.tokens), answer);
}

void Ledger::learnt(std::vector<TokenId> transcript) {
  const std::span<const TokenId> all = transcript;
  if (sure_) {
    if (transcript != history_) report_("the transcript is not what was said");
    return;
  }
  const std::size_t last = turns_.size() - 1;
  if (!begins(all, history_) || !explained(all.subspan(history_.size()), history_, last)) {
    report_("the transcript holds tokens that nobody said");
  }
  history_ = std::move(transcript);
  sure_ = true;
}

}  // namespace troupe::test
