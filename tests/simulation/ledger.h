// Ledger: what one session was asked, what it answered, and whether that can be right. Plain data, no actor.
//
// It knows the session's history as far as its user can, so it computes what every answer must be (hash_model.h), and
// it knows what was done to the session, so it tells an error that has a cause from one that has none. Whatever cannot
// be right is reported. Every turn ends once; an answer is the truth, or a prefix of it if it was cut short.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "actors/records.h"

namespace troupe::test {

// What was done to the whole house, and so may be anybody's reason for an error.
struct Trouble {
  bool draining = false;
  bool engine_failed = false;    // given up, or a launch that hung
  bool text_actor_dead = false;  // killed, and nobody has taken its place yet
  int text_actors = 0;           // so many took their place
  bool few_sessions = false;     // the house opens fewer than are wanted
  std::int64_t pages = 0;        // of the pool
};

class Ledger {
 public:
  using Report = std::function<void(std::string)>;

  Ledger(std::shared_ptr<const Trouble> trouble, Report report);

  // The session begins with these tokens.
  void begins_with(std::vector<TokenId> history) { history_ = std::move(history); }
  // The session began as a fork of `origin`, somewhere after `base` tokens and inside its turns from `first_turn` on;
  // its transcript tells where.
  void begins_as_fork_of(const Ledger& origin, std::span<const TokenId> base, std::size_t first_turn,
                         std::vector<TokenId> transcript);

  // Turns are numbered as they are asked.
  std::size_t asked(Turn turn, bool streams, TimePoint now);
  // Somebody took the turn off the line, or made its step fail.
  void doom_last() { turns_.back().doomed = true; }
  void stop_sent() { ++stops_; }
  void close_sent() { closed_ = true; }
  void killed() { killed_ = true; }
  void credit_sent(std::int32_t credit) { credit_ += credit; }

  void came(const TextDelta& delta);
  void ended(std::size_t turn, const TurnEnd& end);
  void failed(std::size_t turn, const Error& error, TimePoint now);
  // After a turn that did not stream failed, the history is not known; asked for when no turn is open.
  void learnt(std::vector<TokenId> transcript);

  bool sure() const { return sure_; }
  bool over() const { return closed_ || killed_; }
  std::size_t open_turns() const;
  std::size_t turns() const { return turns_.size(); }
  // The first turn that has not ended; turns() when all have.
  std::size_t first_open() const;
  const std::vector<TokenId>& history() const { return history_; }

 private:
  struct Asked {
    Turn turn;
    bool streams = false;
    TimePoint deadline{};
    int text_actors = 0;  // when it was asked
    bool doomed = false;
    bool ended = false;
    std::vector<TokenId> came{};   // in deltas
    std::vector<TokenId> truth{};  // known from the first delta or the end on
    std::int64_t deltas = 0;
  };

  const std::vector<TokenId>& truth_of(Asked& asked);
  void check_answer(Asked& asked, const TurnEnd& end);
  void check_counts(const Asked& asked, const TurnEnd& end);
  bool excused(const Asked& asked, const Error& error, TimePoint now) const;
  void close_turn(Asked& asked, std::span<const TokenId> answer);
  bool explained(std::span<const TokenId> rest, std::span<const TokenId> so_far, std::size_t turn) const;

  std::shared_ptr<const Trouble> trouble_;
  Report report_;
  std::vector<Asked> turns_;
  std::vector<TokenId> history_;
  bool sure_ = true;
  int stops_ = 0;
  bool closed_ = false;
  bool killed_ = false;
  std::int64_t credit_ = 0;       // given back in the turn in work
  std::int64_t late_credit_ = 0;  // in the one before: some may have come too late for that
};

}  // namespace troupe::test
