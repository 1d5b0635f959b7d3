// StepQueue: the steps that wait, and the rule that makes a batch of them.
//
// A Step carries all the tokens of its turn's prompt, or the one pending token; decode is a step of one token. The
// queue cuts slices from the steps over as many launches as it takes and answers each step once.
//
// The gather rule. A batch closes when everyone who was answered by the last launch is back (has sent a step, or said
// that it leaves), or a linger after that launch: kLinger, or a sixteenth of the launch when that is more (32 sessions
// take longer to come back than one, and whoever misses a batch waits a whole launch). Nobody waits for a stranger, so
// a lone caller's step starts at once. (With 64 sessions and a 2 ms launch: closing by a self-message gave 38 to 46
// rows a launch, this rule above 62.)
//
// Whose rows a batch takes, runtime/row_shares.h decides: by key and weight, and in a key those that decode first,
// the oldest first. How many: all that decode, up to max_rows. While prompts wait, rows of any kind up to a budget
// that is time: kPrefillBudget when nobody decodes, else kDecodeBudget, or kStall steps of those who decode when
// that is more. So a prompt keeps two thirds of the machine, and those who decode wait kStall of their usual steps;
// the bound is five (stall_test). At least one row more than decode: a prompt goes on however slow the machine is.
//
// Which guesses a batch takes: those that make its tokens cheaper. Where those who decode get D tokens in a launch of T
// seconds, one more row of c seconds that gives a token with odds q pays when q / c > D / T. So a lone session on a
// machine that is bound by memory verifies long guesses, and a crowd, whose rows cost nearly what they are worth, only
// the sure ones, or none.
//
// Plain data: no thread, no clock. Time comes in as a parameter, so a recorded run replays exactly.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kernels/result.h"
#include "runtime/batch.h"
#include "runtime/launch_cost.h"
#include "runtime/row_shares.h"
#include "runtime/time.h"

namespace troupe {

struct Step {
  SessionId session = 0;
  std::string key;          // who pays: keys share the rows of a launch by their weights
  bool background = false;  // within its key, interactive steps go first
  KvLease cache;
  std::vector<TokenId> tokens;  // at least one; they follow cache.position() tokens
  std::shared_ptr<const SamplingParams> sampling;
  std::shared_ptr<const SamplerState> state;  // may be null
  std::int32_t no_end_for = 0;
  std::int32_t logprobs = -1;
  // The last so many tokens are guesses (runtime/batch.h), each right with these odds when those before it were. They
  // follow one known token. How many of them are computed, the queue decides.
  std::int32_t drafts = 0;
  float draft_odds = 0.0f;
  std::int32_t draft_room = 0;  // guesses that a draft model (runtime/draft_model.h) may make instead, at most
  // For a record (runtime/record/) and a draft model: the tokens that stand before, where the session's last step does
  // not tell them.
  std::shared_ptr<const std::vector<TokenId>> past{};
};

// What a step gave.
struct StepTokens {
  Sampled first;
  std::vector<Sampled> after{};  // one for each guess that was right, in order
  std::int32_t verified = 0;     // guesses that were computed
};

// Called exactly once for every step that was pushed.
using StepAnswer = std::function<void(Result<StepTokens>)>;

class StepQueue {
 public:
  static constexpr auto kLinger = std::chrono::microseconds(300);
  static constexpr int kLingerShare = 16;
  static constexpr Seconds kDecodeBudget{0.100};
  static constexpr Seconds kPrefillBudget{0.250};
  static constexpr double kStall = 3.25;
  static constexpr Seconds kLongestBudget{5.0};  // past it a prompt yields: no stream stands still for longer
  static constexpr std::int64_t kPortion = 16;   // most rows of a prompt at a time, a page; an eighth of a small launch

  explicit StepQueue(std::int64_t max_rows, TimePoint::duration linger = kLinger, KeyWeights weights = {})
      : max_rows_(max_rows), linger_(linger), shares_(std::move(weights)) {}

  void push(Step step, StepAnswer answer);
  // The session will not send a step soon (its turn ended, it is parked or gone): nobody waits for it.
  void leave(SessionId session) { awaited_.erase(session); }

  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  // Someone who was answered by the last launch has neither come back nor left.
  bool awaits_anyone() const { return !awaited_.empty(); }
  // A batch should start now.
  bool ready(TimePoint now) const { return !empty() && (awaited_.empty() || now >= linger_until_); }
  // When ready() becomes true if nothing more arrives.
  TimePoint linger_until() const { return linger_until_; }

  // The steps that decode and are still wanted, valid until gather(); none while prompts wait, for which a batch's time
  // is then.
  std::span<const Step* const> decoding();
  // Rows that the next batch has for guesses at most: everyone who waits may have one first.
  std::int64_t spare_rows() const { return max_rows_ - std::ssize(waiting_); }
  // The costs of launches, as far as they are known.
  const LaunchCost& cost() const { return cost_; }
  // Guesses for the session's step among decoding(), in place of its own.
  void guess(SessionId session, std::span<const TokenId> tokens, float odds);
  // The slices of the next batch; revoked steps are answered `cancelled` and dropped. Valid until finish().
  std::span<Slice> gather();
  std::int64_t decode_rows() const { return decode_rows_; }
  // The gathered batch ran and took so long: answers the steps that are complete or failed.
  void finish(TimePoint now, Seconds took);
  // Answers every waiting step with `error`.
  void fail_all(const Error& error);

 private:
  struct Waiting {
    Step step;
    StepAnswer answer;
    std::int64_t done = 0;   // tokens that earlier launches computed
    std::int64_t taken = 0;  // rows of the next launch
    std::vector<Sampled> after{};
    std::int64_t remaining() const { return static_cast<std::int64_t>(step.tokens.size()) - done; }
    std::int64_t position() const { return step.cache.position() + done; }
    bool decodes() const { return std::ssize(step.tokens) - step.drafts == 1; }
    void keep_drafts(std::int64_t count);
    Lane lane() const {
      if (step.background) return decodes() ? Lane::background_decode : Lane::background_prompt;
      return decodes() ? Lane::decode : Lane::prompt;
    }
  };

  void drop_revoked();
  // How many rows the next batch may have; beyond `least` only as long as the time lasts.
  struct Room {
    std::int64_t least = 0;
    Seconds time{0};
    std::int64_t portion = 1;
  };
  LaunchWork decode_work() const;
  // Both by what those who decode compute without guesses.
  void choose_drafts(LaunchWork work);
  Room room(const LaunchWork& decode) const;
  void share_out(Room room);
  std::int64_t portion(const Waiting& waiting, const Room& room) const;
  void add_slices(bool of_decode);
  void add_slice(Waiting& waiting);
  void settle(Waiting& waiting, Slice& slice);

  std::int64_t max_rows_;
  TimePoint::duration linger_;
  std::vector<std::unique_ptr<Waiting>> waiting_;  // in order of arrival
  std::unordered_set<SessionId> awaited_;
  TimePoint linger_until_{};
  RowShares shares_;
  LaunchCost cost_;

  std::vector<const Step*> decoding_;
  std::vector<Slice> slices_;       // of the batch in work
  std::vector<Waiting*> gathered_;  // slices_[i] is cut from gathered_[i]
  LaunchWork work_;                 // of the batch in work
  std::int64_t decode_rows_ = 0;
};

}  // namespace troupe
