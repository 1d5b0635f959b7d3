// The blocking facade: many conversations on one model, from plain C++ threads, without a word of CAF.
//
//     auto host = troupe::Host::open("model.gguf", {});
//     if (!host) return complain(host.error());
//     auto session = host->open_session({.system = "You are brief."});
//     auto end = session->say("Why is the sky blue?", {}, [](const troupe::TextDelta& delta) {
//       print(delta.text);
//       return true;  // false stops the answer
//     });
//
// Every member may be called from any thread at any time; a Host may be shared by all of them. Calls block until their
// answer is there or their time limit has passed. Callbacks run on the calling thread; a callback that is slow parks
// its own session and no other. stop() works from any thread and from inside a callback.
// A session's answer does not depend on who shares the batch, bit for bit (docs/numerics.md).
//
// A Session lives no longer than its Host: calls on one whose host is gone return `shutting_down`. Calling from inside
// one of the host's own actors would block the thread that has to answer: refused with `bad_input`.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/records.h"
#include "kernels/result.h"
#include "runtime/engine_options.h"

namespace troupe {

struct HostOptions {
  EngineOptions engine{};
  bool fuse = true;  // false: every step is a launch of its own (for benchmarks only)
  // Bytes of keys and values kept for sessions that begin alike; 0: nothing is shared. See OpenSession::key.
  std::uint64_t prefix_memory = std::numeric_limits<std::uint64_t>::max();
  // Where idle sessions' keys and values go when running turns need their pages: host memory, then a file.
  SleepOptions sleep{};
  // Where not all get what they want, a key of weight 2 has twice the rows and pages of one of weight 1; 1 to 1000, 1
  // for every key that is not named.
  std::map<std::string, int> key_weights{};
  // Tokens that a session may guess ahead from its own history, at most kMostDrafts; 0: none. They are verified in the
  // launch that comes anyway, as far as that pays: the same answers, bit for bit, in fewer launches where text repeats
  // itself.
  std::int32_t drafts = 0;
  static constexpr std::int32_t kMostDrafts = 16;
  // A smaller model with the same tokens, a GGUF file, which guesses where a session's own history tells nothing; it is
  // asked only where that pays. `drafts` of 0 is then 8. Empty: none.
  std::string draft{};
  // How many tokens are guessed ahead at most if `drafts` were asked for, with a draft model or without.
  static constexpr std::int32_t guesses(std::int32_t drafts, bool draft_model) {
    return drafts == 0 && draft_model ? 8 : drafts;
  }
  // A new file for what the batcher decides by and what comes of it, which `troupe replay` computes once more, bit by
  // bit; it holds what is said, as tokens. Empty: none. See docs/replay.md.
  std::string record{};
  std::chrono::milliseconds drain_limit{5000};  // how long the destructor lets running turns go on
};

// Called for each piece of text. Return false to stop the answer.
using OnDelta = std::function<bool(const TextDelta&)>;

struct TurnOptions {
  TurnLimits limits{};
  std::optional<SamplingParams> sampling{};
  LogitsProcessor logits_processor{};  // runs inside launches: runtime/sampling/logits_processor.h
  std::int32_t logprobs = -1;
  std::chrono::milliseconds time_limit{std::chrono::minutes(10)};
  bool background = false;  // as Turn::background
};

struct RankedAnswer;

class Session {
 public:
  static constexpr std::int32_t kMostBranches = 256;

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();  // closes the session; a turn in work on another thread ends as cancelled

  // The next message of a chat.
  Result<TurnEnd> say(std::string_view text, const TurnOptions& options = {}, const OnDelta& on_delta = {});
  // Any turn (records.h): text or tokens that follow as they are, another role.
  Result<TurnEnd> take(Turn turn, const OnDelta& on_delta = {});
  // Ends the turn in work, if any, as cancelled. Does not wait.
  void stop();
  Result<Transcript> transcript();
  // Where its time, tokens and pages went; in mid-turn too.
  Result<SessionTrace> trace() const;
  // A session of its own with the first `tokens` tokens of this one (-1: all it has by now, in mid-answer too). Costs
  // no memory until one of the two goes on; each then goes on as if it had always been alone. To let it finish an
  // answer that it was forked in, take a Turn of no tokens. Penalties count what stood before the fork as prompt.
  Result<Session> fork(std::int64_t tokens = -1) const;
  // `n` answers to one turn, best first. The prompt is computed once; branch i is forked behind it and draws with the
  // seed + turn.branch + i, so it says what the same turn with `branch` = i says alone, bit for bit. Ranked by the mean
  // log-probability of the tokens (of the model's own distribution; equal ones by branch), so ends hold
  // log-probabilities whether the turn asks for them or not. This session stays as it was: go on with a branch's.
  // Temperature 0 gives n equal answers. A turn that heals is refused: its first tokens belong to its prompt.
  Result<std::vector<RankedAnswer>> best_of(Turn turn, std::int32_t n);
  // What fork() would have, into a file that Host::load_session reads, in another process too (runtime/snapshot.h).
  Result<void> save(const std::string& path) const;

 private:
  friend class Host;
  struct State;
  struct Asked;
  template <class Answer, class Atom>
  Result<Answer> ask_actor(Atom question) const;
  Result<Asked> ask(Turn turn, bool wants_text) const;
  explicit Session(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// One answer of best_of(), with the session that gave it.
struct RankedAnswer {
  Session session;
  TurnEnd end;
  std::uint64_t branch = 0;  // Turn::branch
  double mean_logprob = 0.0;
};

class Host {
 public:
  static Result<Host> open(const std::string& model_path, const HostOptions& options);
  Host(Host&&) noexcept;
  Host& operator=(Host&&) noexcept;
  ~Host();  // refuses new sessions, lets turns end within drain_limit, then stops everything

  Result<Session> open_session(const OpenSession& opening = {});
  Result<Session> load_session(const std::string& path);
  // One stateless request: a session of its own for one turn.
  Result<TurnEnd> generate(Turn turn, const OnDelta& on_delta = {});

  Result<HostInfo> describe() const;
  Result<LaunchStats> launch_stats() const;

 private:
  friend class Session;
  struct State;
  explicit Host(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace troupe
