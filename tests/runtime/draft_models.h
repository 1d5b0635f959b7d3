// What the tests of the draft model share: one that computes with a stub whose next token follows from the last ones,
// on a clock that only launches move.
#pragma once

#include <gtest/gtest.h>
#include <map>

#include "runtime/draft_model.h"
#include "tests/runtime/pool_of.h"

namespace troupe::test {

inline Vocabulary letters(std::vector<std::string> pieces) {
  VocabularyData data;
  data.kinds.assign(pieces.size(), TokenKind::normal);
  data.pieces = std::move(pieces);
  data.eos = static_cast<TokenId>(data.pieces.size() - 1);
  return *Vocabulary::create(std::move(data));
}

inline Vocabulary hundred() {
  std::vector<std::string> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back("t" + std::to_string(i));
  return letters(std::move(pieces));
}

// What both models say: the sum of the last two tokens, of all tokens but the last.
inline TokenId next_of(std::span<const TokenId> tokens) {
  const TokenId last = tokens.back(), before = tokens.size() > 1 ? tokens[tokens.size() - 2] : 0;
  return (last + before + 1) % 99;
}

class DraftModels : public testing::Test {
 protected:
  using Tokens = std::vector<TokenId>;
  using microseconds = std::chrono::microseconds;
  static constexpr std::int32_t kMost = 4;

  DraftModels() { learn_costs(microseconds(10'000), microseconds(10)); }

  // What a verifying launch costs.
  void learn_costs(microseconds launch, microseconds row) {
    verifying_ = {};
    for (std::int64_t rows : {1, 32, 1, 32, 1, 32, 1, 32}) {
      LaunchWork work;
      for (std::int64_t i = 0; i < rows; ++i) work.add(0, 1);
      verifying_.learn(work, launch + row * rows);
    }
  }

  DraftEngine stub(std::int64_t context = 256) {
    return {[this](std::span<Slice> batch) { compute(batch); }, pages_, std::make_shared<Vocabulary>(hundred()),
            context, 64};
  }

  // What a session was computed of stands here, as it does in its pages.
  void compute(std::span<Slice> batch) {
    ++launches_;
    if (fault_) fault_();
    for (Slice& slice : batch) {
      rows_ += std::ssize(slice.tokens);
      Tokens& seen = seen_[slice.session];
      ASSERT_LE(slice.position, std::ssize(seen)) << "what stands before was never computed";
      seen.resize(static_cast<std::size_t>(slice.position));
      seen.insert(seen.end(), slice.tokens.begin(), slice.tokens.end());
      ASSERT_TRUE(slice.wants_token || slice.tokens.size() > 1) << "a row that nobody asked for";
      slice.sampled.token = wrong_ || slice.session == wrong_session_ ? 98 : next_of(seen);
    }
    now_ += launch_takes_ + row_takes_ * static_cast<int>(batch.size());
  }

  // The session's next step of one token, behind all that it has said.
  Step step(SessionId session, bool tells = false) {
    const Tokens& said = said_[session];
    Step step;
    step.session = session;
    step.cache = KvLease::without_pages(std::ssize(said) - 1, std::make_shared<std::atomic<bool>>(false));
    step.tokens = {said.back()};
    step.sampling = std::make_shared<SamplingParams>(SamplingParams::greedy());
    step.draft_room = 16;
    if (tells) step.past = std::make_shared<const Tokens>(said.begin(), said.end() - 1);
    return step;
  }
  void begin(DraftModel& model, SessionId session, Tokens said) {
    said_[session] = std::move(said);
    model.arrived(step(session, true));
  }

  Result<std::vector<DraftModel::Guess>> guess(DraftModel& model, const std::vector<Step>& steps) {
    std::vector<const Step*> pointers;
    for (const Step& one : steps) pointers.push_back(&one);
    const auto guesses = model.guess(pointers, spare_rows_, verifying_, [this] { return now_; });
    if (!guesses) return guesses.error();
    return std::vector<DraftModel::Guess>(guesses->begin(), guesses->end());
  }
  // One round of one session: guesses, verification, and what it says then. How many guesses there were.
  std::int64_t round(DraftModel& model, SessionId session) {
    const std::vector<Step> steps{step(session)};
    model.arrived(steps[0]);
    const auto guesses = guess(model, steps);
    const Tokens guessed = guesses && !guesses->empty() ? guesses->front().tokens : Tokens();
    Tokens& said = said_[session];
    Slice slice{.session = session, .wants_token = true, .drafts = static_cast<std::int32_t>(guessed.size())};
    std::vector<Sampled> after;
    said.push_back(next_of(said));
    slice.sampled.token = said.back();
    while (slice.right < slice.drafts && guessed[static_cast<std::size_t>(slice.right)] == said.back()) {
      ++slice.right;
      said.push_back(next_of(said));
      after.push_back({.token = said.back()});
    }
    slice.after = after;
    model.learn({&slice, 1});
    return slice.drafts;
  }

  std::shared_ptr<PagePool> pages_ = pool_of(32);
  LaunchCost verifying_;
  TimePoint now_{};
  microseconds launch_takes_{100}, row_takes_{10};
  std::int64_t spare_rows_ = 64;
  bool wrong_ = false;
  SessionId wrong_session_ = 0;  // of whom it knows nothing
  std::function<void()> fault_;
  std::int64_t launches_ = 0, rows_ = 0;
  std::map<SessionId, Tokens> seen_, said_;
};

}  // namespace troupe::test
