// DraftModel: guesses what comes next with a second, smaller model of the same vocabulary (Leviathan, Kalman and Matias
// 2023). A guess never changes a token: runtime/batch.h.
//
// It lives with the batcher, between two launches: for all sessions that decode it computes one token after another, in
// launches of its own over all of them. Each guess is drawn as the session will draw: with its parameters, its memory
// and the random number of its seed and position, so at any temperature two models that agree draw the same.
//
// How many tokens ahead, and for whom, is decided before each of these launches. With D tokens expected in T seconds,
// one more guess for each of some sessions pays when what it is expected to give, by the time of its row in the launch
// that verifies it and of the draft's own, is more than D / T. Both prices are learnt (runtime/launch_cost.h), as are
// the odds of each session's guesses. Before anything is known a guess is taken for good, and what is known fades where
// nothing is guessed. The first launches are made whatever they cost (the very first one reads cold memory, and says
// little), and some more now and then: so guessing ends where it does not pay, and begins again when it would.
//
// Its keys and values are a cache by tokens (runtime/sequence_caches.h) in a pool of its own: no session owns, reserves
// or waits for them. A session whose prompt it has not computed yet is caught up with in portions.
// What fails in it costs guesses, never a step. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/guess_odds.h"
#include "runtime/launch_cost.h"
#include "runtime/sequence_caches.h"
#include "runtime/step_queue.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

class Engine;

// What it computes with. Without `run` there is none.
struct DraftEngine {
  RunBatch run{};
  std::shared_ptr<PagePool> pages{};
  std::shared_ptr<const Vocabulary> vocabulary{};
  std::int64_t context = 0, max_rows = 0;

  static DraftEngine of(std::shared_ptr<Engine> engine);
};

// An Error that names the first difference when the two do not have the same tokens.
Result<void> same_tokens(const Vocabulary& draft, const Vocabulary& target);

// The model of the file as a draft of the target's, on its backend. Without a path there is none: null.
Result<std::shared_ptr<Engine>> open_draft(const Engine& target, const std::string& path);

class DraftModel {
 public:
  // Rows a launch of its own spends on long prompts that it has not computed.
  static constexpr std::int64_t kCatchUp = 64;
  static constexpr std::size_t kMostSessions = 4096;  // that it remembers
  static constexpr int kTries = 8;                    // launches whatever they cost, to begin with
  static constexpr int kTryAgain = 2;                 // and after
  static constexpr int kPause = 256;                  // times that it did not pay
  using ReadClock = std::function<TimePoint()>;

  // At most `most` guesses a step.
  DraftModel(DraftEngine engine, std::int32_t most);

  struct Guess {
    SessionId session = 0;
    std::vector<TokenId> tokens;
    float odds = 0.0f;  // as Step::draft_odds; those of a try are 1, so that they are verified
  };

  // A step came. Of a session whose past was never told (Step::past) nothing is guessed.
  void arrived(const Step& step);
  // For those of `steps`, which decode one token each, for whom it pays by the costs of the launch that verifies it,
  // which has `spare_rows` for all their guesses.
  // Valid until the next call. After an Error, which says why, nothing is guessed any more.
  Result<std::span<const Guess>> guess(std::span<const Step* const> steps, std::int64_t spare_rows,
                                       const LaunchCost& verifying, const ReadClock& clock);
  // The launch has run: what was right of its guesses.
  void learn(std::span<const Slice> batch);
  Seconds spent() const { return spent_; }

 private:
  struct Told {
    std::vector<TokenId> tokens{};  // up to the end of its last step, and the guesses that it has
    std::size_t known = 0;          // of these, those that are no guesses
    GuessOdds odds{};
    std::uint64_t used = 0;
    bool guessed = false;                      // the last step's guesses are from here
    std::optional<std::size_t> ends_behind{};  // so many of its guesses an end is expected
  };
  // A session that is guessed for.
  struct Drafting {
    const Step* step;
    Told* told;
    float odds;
    std::int64_t room;
    KvCache* cache = nullptr;
    std::vector<TokenId> next{};            // to compute
    std::shared_ptr<SamplerState> state{};  // null: the step's own
    std::vector<TokenId> guesses{};
    bool over = false;
    bool ends = false;  // behind its guesses

    bool goes_on() const { return !over && std::ssize(guesses) < room; }
    std::int64_t position() const { return step->cache.position() + 1 + std::ssize(guesses); }
    std::int64_t behind() const { return static_cast<std::int64_t>(told->known) - cache->length(); }
    Slice slice(const KvLease& lease) const;
  };

  void choose_whom(std::span<const Step* const> steps, std::int64_t spare_rows, const LaunchCost& verifying);
  bool deeper(const LaunchCost& verifying);
  void find_caches();
  void catch_up();
  void launch(const ReadClock& clock);
  bool run();
  void settle(Drafting& draft, const Slice& slice);
  void drop(Drafting& draft);
  void pause();
  void take_guesses(bool tries);
  void count(Told& told, bool right);
  void forget_longest_unused();

  DraftEngine engine_;
  std::int32_t most_;
  SequenceCaches caches_;
  LaunchCost cost_;
  GuessOdds odds_;  // of all sessions: what is believed of a new one
  std::unordered_map<SessionId, Told> told_;
  std::uint64_t launches_ = 0;  // that were guessed for
  Seconds spent_{0};
  int tries_ = kTries;  // launches that are made whatever they cost
  int pause_ = 0;       // times in turn that none was made

  std::vector<Drafting> drafting_;   // empty between two calls: it borrows from steps
  std::int64_t spare_rows_ = 0;      // that the verifying launch still has
  LaunchWork verified_;              // what the verifying launch computes so far
  double expected_ = 0;              // tokens that it gives
  Seconds seconds_{0};               // and its time, with that of the guessing
  std::vector<Drafting*> computed_;  // in the launch in work
  std::vector<KvLease> leases_;
  std::vector<Slice> slices_;
  std::vector<Guess> guesses_;
};

}  // namespace troupe
