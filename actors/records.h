// The records that travel in messages, free of CAF: an application that uses the blocking facade sees only these.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/answer.h"
#include "runtime/kv/page_time.h"
#include "runtime/kv/prefix_index.h"
#include "runtime/kv/sleep_options.h"
#include "runtime/sampler.h"
#include "runtime/sampling_params.h"
#include "runtime/text/message.h"
#include "runtime/time.h"
#include "runtime/token_window.h"

namespace troupe {

// A session's past, enough to go on elsewhere or later: the next turn computes the cache anew.
struct Transcript {
  std::vector<Message> messages;  // of a chat; empty for plain text
  std::vector<TokenId> tokens;    // every token of the session, in order
};

// Where a session's turn stands.
enum class SessionPhase : std::uint8_t {
  idle,        // no turn
  planning,    // its prompt is being rendered and tokenized
  queued,      // waiting for pages, or being woken
  prefilling,  // its first step is with the batcher
  decoding,    // between its first and its last token
  parked,      // its sink has no credit
};
const char* name(SessionPhase phase);

// How long a session was in each phase. Asleep: idle, and its history stands in no page.
struct PhaseTimes {
  using Time = std::chrono::nanoseconds;
  Time idle{0}, asleep{0}, planning{0}, queued{0}, prefilling{0}, decoding{0}, parked{0};

  Time& of(SessionPhase phase);
  Time sum() const { return idle + asleep + planning + queued + prefilling + decoding + parked; }
  bool operator==(const PhaseTimes&) const = default;
};

// What became of a session's time, tokens and memory. Answered in mid-turn too; the turn in work counts.
struct SessionTrace {
  SessionPhase phase = SessionPhase::idle;  // now
  std::chrono::nanoseconds age{0};
  PhaseTimes times;        // their sum is `age`, to the nanosecond
  std::int64_t turns = 0;  // that have ended, well or not
  std::int64_t prompt_tokens = 0, cached_tokens = 0, computed_tokens = 0, answer_tokens = 0;  // as in TurnEnd, of all
  // Pages x time. Who takes a page pays, who shares it does not: all sessions and the house's own are the pool's total
  // (PageBill).
  PageTime page_time;

  bool operator==(const SessionTrace&) const = default;
};

struct OpenSession {
  std::string system{};              // the system message of a chat; empty: the template's own
  std::optional<Transcript> past{};  // go on from here; `system` must then be empty
  SamplingParams sampling{};
  std::string key{};  // who pays: rows and pages are shared between keys by weight, prefixes inside one
  // Go on without end: when the history outgrows the window, the model sees its first and its newest tokens only.
  TokenWindow window{};

  Result<void> validate(std::int64_t vocabulary, std::int64_t context) const;
};

// One request to a session.
struct Turn {
  enum class Kind : std::uint8_t {
    message,  // `text` is the next message of `role`, rendered through the chat template
    text,     // `text` is appended as it is; control text in it is only text
    tokens,   // `tokens` are appended as they are
  };
  Kind kind = Kind::message;
  std::string role = "user";
  std::string text;
  std::vector<TokenId> tokens;
  // The prompt's last tokens are taken back where the model may have written one token across the prompt's end, and the
  // answer's first tokens spell their text again (runtime/text/healing.h). They count as tokens of the answer; its text
  // and deltas show only what lies past the prompt's end. Of text and tokens; a message ends with the template's text.
  bool heal = false;
  TurnLimits limits;
  std::optional<SamplingParams> sampling;  // for this turn; else the session's
  std::uint64_t branch = 0;                // added to the seed (modulo 2^64): another answer to the same
  LogitsProcessor logits_processor{};      // runtime/sampling/logits_processor.h; null: none
  std::int32_t logprobs = -1;              // -1: none; k: each token's own and the k most likely (at most 20)
  std::int32_t credit = 64;                // deltas that may be under way before the sink gives credit back
  std::chrono::milliseconds time_limit{std::chrono::minutes(10)};  // for waiting and computing together

  // Nobody waits for it: of the rows and pages of its key, turns that are not in the background come first.
  bool background = false;

  static constexpr std::int32_t kMaxLogprobs = 20;
  static constexpr std::chrono::hours kLongestLimit{30 * 24};

  // max_text_bytes: no text of more bytes can fit `context` tokens.
  Result<void> validate(std::int64_t vocabulary, std::int64_t context, std::size_t max_text_bytes) const;
};

struct TextDelta {
  std::string text;                 // whole characters; may be empty when only tokens are to be reported
  std::vector<TokenId> tokens;      // the tokens computed since the last delta
  std::vector<Sampled> logprobs;    // one a token, when asked for
  std::int64_t dropped_tokens = 0;  // as in TurnEnd
};

struct TurnEnd {
  FinishReason reason = FinishReason::none;
  std::string text;                  // the whole answer
  std::vector<TokenId> tokens;       // the whole answer, an end token included
  std::vector<Sampled> logprobs;     // one a token, when asked for
  std::int64_t prompt_tokens = 0;    // tokens before the answer
  std::int64_t cached_tokens = 0;    // of these, found in the cache
  std::int64_t computed_tokens = 0;  // rows this turn had computed, those of guesses too
  std::int64_t draft_tokens = 0;     // guesses of the answer's tokens that were computed
  std::int64_t right_drafts = 0;     // of these, those that were right: tokens that cost no launch of their own
  std::int64_t dropped_tokens = 0;   // of the history, behind its sinks, that the model sees no more
  Seconds queued{0};                 // waiting for pages
  Seconds prefill{0};                // from the first step to the first token
  Seconds decode{0};                 // from the first token to the last
  Seconds parked{0};                 // between the first token and the end: without credit
  PageTime page_time;                // what the session's pages cost from the turn's start to its end
};

struct HostInfo {
  std::string model;
  std::string engine;  // one line of facts
  std::uint64_t fingerprint = 0;
  std::int64_t context = 0;
  std::int64_t pages_total = 0;
  std::int64_t pages_free = 0;  // beside these, those that only the index of prefixes holds
  PrefixCounters prefixes;
  SleepCounters sleepers;
  PageBill bill;  // of all pages since the engine was opened; `living` is the sum of all sessions' SessionTrace
  std::int64_t sessions = 0;
  std::int64_t waiting = 0;  // turns in line for pages
  std::int64_t batcher_restarts = 0;
  bool ready = false;  // false while the engine hangs, has failed, or the host drains
};

// Totals of one batcher since it started.
struct LaunchStats {
  std::uint64_t launches = 0;
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> by_width;         // [w]: launches that computed w sessions
  std::vector<std::uint64_t> by_decode_width;  // [w]: launches with w decoding sessions
  std::uint64_t drafts = 0, right_drafts = 0;  // rows of guesses, and those that were right
  Seconds busy{0};                             // inside launches
  Seconds drafting{0};                         // inside those of a draft model
};

}  // namespace troupe
