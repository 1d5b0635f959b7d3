// Guesses change no token: a sequence whose next tokens are guessed, rightly and wrongly, beside the same sequence that
// computes one token a launch.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <iostream>
#include <memory>

#include "runtime/sampling/memory.h"
#include "tests/runtime/decorated_backend.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

constexpr int kAnswer = 60;

struct Told {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  int launches = 0, guesses = 0, right = 0;
};

// One conversation: its cache, its sampler's memory, and what it said.
class Talker {
 public:
  Talker(Engine& engine, std::vector<TokenId> prompt, SamplingParams params, std::int32_t min_tokens)
      : engine_(engine),
        cache_(engine.pages()),
        history_(std::move(prompt)),
        prompt_(std::ssize(history_)),
        params_(std::move(params)),
        memory_(first_memory(params_, history_, vocabulary())),
        min_tokens_(min_tokens) {
    if (!cache_.reserve(std::ssize(history_) + kAnswer + 16)) throw std::runtime_error("no pages");
  }

  bool over() const { return std::ssize(told_.tokens) >= kAnswer; }
  const Told& told() const { return told_; }

  // Its next slice, with these guesses behind what is known.
  Slice slice(std::span<const TokenId> guesses) {
    row_.assign(history_.begin() + cache_.length(), history_.end());
    row_.insert(row_.end(), guesses.begin(), guesses.end());
    after_.assign(guesses.size(), {});
    lease_ = cache_.lend();
    return {.cache = &lease_,
            .position = cache_.length(),
            .tokens = row_,
            .wants_token = true,
            .sampling = &params_,
            .state = memory_.get(),
            .no_end_for = std::max(min_tokens_ - static_cast<std::int32_t>(std::ssize(told_.tokens)), 0),
            .logprobs = 2,
            .drafts = static_cast<std::int32_t>(guesses.size()),
            .after = after_};
  }

  void take(const Slice& slice) {
    ASSERT_FALSE(slice.failed) << slice.failure;
    cache_.commit(std::ssize(history_) + slice.right);
    lease_ = {};
    ++told_.launches;
    told_.guesses += slice.drafts;
    told_.right += slice.right;
    accept(slice.sampled);
    for (std::int32_t i = 0; i < slice.right; ++i) accept(slice.after[static_cast<std::size_t>(i)]);
  }

 private:
  const Vocabulary& vocabulary() const { return *engine_.text().vocabulary; }
  void accept(const Sampled& sampled) {
    history_.push_back(sampled.token);
    told_.tokens.push_back(sampled.token);
    told_.logprobs.push_back(sampled.logprob);
    for (const TokenLogprob& one : sampled.top) told_.logprobs.push_back(one.logprob);
    if (memory_) memory_ = accepted(std::move(memory_), params_, sampled, vocabulary());
  }

  Engine& engine_;
  KvCache cache_;
  KvLease lease_;
  std::vector<TokenId> history_, row_;
  std::int64_t prompt_;
  SamplingParams params_;
  std::shared_ptr<SamplerState> memory_;
  std::int32_t min_tokens_;
  std::vector<Sampled> after_;
  Told told_;
};

struct Case {
  const char* name;
  SamplingParams params;
};

std::vector<Case> cases() {
  const SamplingParams open{.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 5};
  std::vector<Case> all{{"greedy", SamplingParams::greedy()}, {"open", open}};
  const auto add = [&](const char* name, auto change) {
    all.push_back({name, open});
    change(all.back().params);
  };
  add("the usual cuts", [](SamplingParams& p) { p = {.seed = 9}; });
  add("penalties",
      [](SamplingParams& p) { p.repetition_penalty = 1.3f, p.frequency_penalty = p.presence_penalty = 1; });
  add("DRY", [](SamplingParams& p) { p.temperature = 0.0f, p.dry_multiplier = 2.0f; });
  add("Mirostat", [](SamplingParams& p) { p.mirostat = 2; });
  add("XTC and bias", [](SamplingParams& p) { p.xtc_probability = 0.5f, p.logit_bias = {{5, 8.0f}, {2, 3.0f}}; });
  return all;
}

class Drafts : public testing::Test {
 protected:
  Drafts() : engine_(open_engine(path(), tiny_options({"auto", 1}))) {}

  static std::string path() {
    static const ScratchFolder folder;
    static const std::string file = write_tiny_model(tiny_model(DType::q4_0), folder.file("drafts.gguf"));
    return file;
  }
  Talker talker(const Case& one, int which) {
    Random random(static_cast<std::uint64_t>(100 + which));
    return {*engine_, random_tokens(random, 5 + 9 * which, engine_->shape().vocabulary), one.params, 20};
  }
  Told plain(const Case& one, int which) {
    Talker alone = talker(one, which);
    while (!alone.over()) {
      Slice slice = alone.slice({});
      engine_->run({&slice, 1});
      alone.take(slice);
    }
    return alone.told();
  }
  // The true next tokens, each spoilt with these odds in 100; any number of them up to 6.
  std::vector<TokenId> guesses(const Told& truth, const Told& so_far, std::int64_t spoilt, Random& random) {
    std::vector<TokenId> guessed;
    const auto from = truth.tokens.begin() + std::ssize(so_far.tokens);
    const auto count = std::min<std::int64_t>(random.below(7), truth.tokens.end() - from - 1);
    guessed.assign(from, from + std::max<std::int64_t>(count, 0));
    for (TokenId& token : guessed) {
      if (random.below(100) < spoilt) token = static_cast<TokenId>(random.below(engine_->shape().vocabulary));
    }
    return guessed;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(Drafts, change_no_token_whatever_is_guessed_alone_and_in_a_crowd_of_all_kinds_of_sampling) {
  const std::vector<Case> all = cases();
  std::vector<Told> truth;
  for (std::size_t i = 0; i < all.size(); ++i) truth.push_back(plain(all[i], static_cast<int>(i)));
  int guesses_made = 0, right = 0;
  for (const std::int64_t spoilt : {0, 20, 60, 100}) {
    Random random(static_cast<std::uint64_t>(spoilt + 1));
    std::vector<Talker> crowd;
    crowd.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) crowd.push_back(talker(all[i], static_cast<int>(i)));
    const auto someone_talks = [&] {
      return !std::ranges::all_of(crowd, [](const Talker& one) { return one.over(); });
    };
    while (someone_talks()) {
      const bool alone = random.below(4) == 0;
      std::vector<std::vector<TokenId>> guessed;
      std::vector<Slice> batch;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < crowd.size(); ++i) {
        if (crowd[i].over() || (alone && !who.empty())) continue;
        guessed.push_back(guesses(truth[i], crowd[i].told(), spoilt, random));
        batch.push_back(crowd[i].slice(guessed.back()));
        who.push_back(i);
      }
      engine_->run(batch);
      for (std::size_t k = 0; k < who.size(); ++k) ASSERT_NO_FATAL_FAILURE(crowd[who[k]].take(batch[k]));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(all[i].name);
      EXPECT_EQ(crowd[i].told().tokens, truth[i].tokens);
      EXPECT_EQ(0, std::memcmp(crowd[i].told().logprobs.data(), truth[i].logprobs.data(),
                               truth[i].logprobs.size() * sizeof(float)));
      if (spoilt == 0) {
        EXPECT_EQ(crowd[i].told().right, crowd[i].told().guesses) << "the truth was guessed";
        EXPECT_LT(crowd[i].told().launches, kAnswer / 2);
      }
      if (spoilt == 100) {
        EXPECT_LT(crowd[i].told().right, 5);
      }
      guesses_made += crowd[i].told().guesses;
      right += crowd[i].told().right;
    }
  }
  std::cout << right << " of " << guesses_made << " guesses were right\n";
}

TEST_F(Drafts, no_end_token_is_chosen_behind_a_guess_while_none_may_come) {
  // The end token is by far the likeliest.
  Case one{"ends", SamplingParams::greedy()};
  one.params.logit_bias = {{2, 50.0f}};
  const Told truth = plain(one, 1);
  EXPECT_EQ(std::ranges::find(truth.tokens, 2) - truth.tokens.begin(), 20);
  Talker guessing = talker(one, 1);
  Random random(3);
  while (!guessing.over()) {
    const auto guessed = guesses(truth, guessing.told(), 0, random);
    Slice slice = guessing.slice(guessed);
    engine_->run({&slice, 1});
    ASSERT_NO_FATAL_FAILURE(guessing.take(slice));
  }
  EXPECT_EQ(guessing.told().tokens, truth.tokens);
}

// Rows of this token are not finite.
class BrokenToken final : public DecoratedBackend {
 public:
  static constexpr TokenId kToken = 77;
  using DecoratedBackend::DecoratedBackend;
  void embed(float* h, const PreparedWeight& table, const BatchView& batch) override {
    DecoratedBackend::embed(h, table, batch);
    for (std::int64_t row = 0; row < batch.rows(); ++row) {
      if (batch.tokens[static_cast<std::size_t>(row)] == kToken) h[row * table.cols] = std::nanf("");
    }
  }
};

TEST_F(Drafts, a_guess_whose_row_is_not_finite_fails_nobody) {
  const Case one{"greedy", SamplingParams::greedy()};
  const Told truth = plain(one, 1);
  engine_ = open_on(std::make_unique<BrokenToken>(*make_backend("reference", 1, Numa::off)), path(),
                    tiny_options({"reference", 1}));
  Talker guessing = talker(one, 1);
  const std::vector<TokenId> guessed{truth.tokens[0], BrokenToken::kToken, truth.tokens[1]};
  Slice slice = guessing.slice(guessed);
  engine_->run({&slice, 1});
  EXPECT_FALSE(slice.failed) << slice.failure;
  EXPECT_EQ(slice.right, 1);
  EXPECT_EQ(slice.after[0].token, truth.tokens[1]);
}

TEST_F(Drafts, a_guess_behind_which_nothing_can_be_chosen_fails_nobody) {
  Case one{"three tokens at most", SamplingParams::greedy()};
  const Told truth = plain(one, 1);
  Talker guessing = talker(one, 1);
  Random random(3);
  Slice slice = guessing.slice(std::span(truth.tokens).first(4));
  SamplerState refuses;
  int calls = 0;
  refuses.processor = std::make_shared<const LogitsProcessor>([&](std::span<float>, std::span<const TokenId>) {
    if (++calls == 3) throw std::runtime_error("enough");
  });
  slice.state = &refuses;
  engine_->run({&slice, 1});
  EXPECT_FALSE(slice.failed);
  EXPECT_EQ(slice.right, 1);
  EXPECT_EQ(slice.sampled.token, truth.tokens[0]);
  EXPECT_EQ(slice.after[0].token, truth.tokens[1]);
}

}  // namespace
}  // namespace troupe::test
