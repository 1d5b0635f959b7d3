// Caches by tokens: every past has its own bits, whatever its session held before and whatever was dropped.
#include "runtime/sequence_caches.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "tests/runtime/engine_lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tokens.h"

namespace troupe::test {
namespace {

class Sequences : public testing::Test {
 protected:
  static constexpr std::int64_t kPages = 12;

  Sequences() : model_(write_tiny_model(tiny_model(DType::q4_0), folder_.file("model.gguf"))) {
    EngineOptions options = tiny_options({"auto", 1});
    other_ = open_engine(model_, options);
    options.kv_memory = kPages * other_->pages()->layout().page_bytes();
    options.max_rows = 16;
    engine_ = open_engine(model_, options);
    const auto trunk = tokens(37);
    for (int i = 0; i < 3; ++i) texts_.push_back(joined(trunk, tokens(30)));
    texts_.push_back(tokens(67));
    for (const auto& text : texts_) logits_.push_back(all_logits(*other_, text));
  }

  std::vector<TokenId> tokens(std::int64_t count) { return random_tokens(random_, count, engine_->shape().vocabulary); }
  static Result<KvCache*> prepare(SequenceCaches& caches, SessionId session, const std::vector<TokenId>& text,
                                  std::int64_t length) {
    return caches.prepare(session, std::span(text).first(static_cast<std::size_t>(length)), 1);
  }
  static SequenceCaches caches_of(Engine& engine) {
    return {engine.pages(), [&engine](std::span<Slice> batch) { engine.run(batch); }, engine.max_rows()};
  }
  // The next row of a text: its logits are those of the text computed at once on another engine.
  void compute_next(SequenceCaches& caches, SessionId session, std::size_t which, std::int64_t at) {
    const auto cache = prepare(caches, session, texts_[which], at);
    ASSERT_TRUE(cache) << cache.error().message;
    const auto vocabulary = static_cast<std::size_t>(engine_->shape().vocabulary);
    std::vector<float> logits(vocabulary);
    const auto row = std::span(texts_[which]).subspan(static_cast<std::size_t>(at), 1);
    const KvLease lease = (*cache)->lend();
    Slice slice{.cache = &lease, .position = at, .tokens = row, .logits = logits};
    engine_->run({&slice, 1});
    (*cache)->commit(at + 1);
    caches.computed(session, row);
    const float* expected = logits_[which].data() + static_cast<std::size_t>(at) * vocabulary;
    ASSERT_EQ(std::memcmp(logits.data(), expected, vocabulary * sizeof(float)), 0) << which << " at " << at;
  }

  ScratchFolder folder_;
  std::string model_;
  Random random_{11};
  std::unique_ptr<Engine> other_, engine_;
  std::vector<std::vector<TokenId>> texts_;  // three that begin alike, and another
  std::vector<std::vector<float>> logits_;
};

TEST_F(Sequences, from_any_past_gives_the_bits_of_a_sequence_computed_at_once) {
  SequenceCaches caches = caches_of(*engine_);
  for (int i = small_scale() ? 400 : 4000; i > 0 && !HasFatalFailure(); --i) {
    caches.begin_launch();
    compute_next(caches, static_cast<SessionId>(random_.below(6)), static_cast<std::size_t>(random_.below(4)),
                 random_.below(66));
  }
}

TEST_F(Sequences, shares_the_pages_of_a_common_beginning) {
  SequenceCaches caches = caches_of(*engine_);
  caches.begin_launch();
  for (SessionId session = 0; session < 3; ++session) ASSERT_TRUE(prepare(caches, session, texts_[session], 40));
  EXPECT_EQ(engine_->pages()->used(), 3 + 1 + 1) << "37 tokens are the same: two pages of three";
  EXPECT_EQ(engine_->counters().rows, 40u + 3u + 3u);
}

TEST_F(Sequences, drops_the_longest_unused_and_says_when_a_launch_does_not_fit) {
  SequenceCaches caches = caches_of(*engine_);
  for (SessionId session = 0; session < 3; ++session) {  // 4 pages each: all there are
    caches.begin_launch();
    ASSERT_TRUE(caches.prepare(session, tokens(60), 1));
  }
  caches.begin_launch();
  ASSERT_TRUE(caches.prepare(3, tokens(60), 1)) << "instead of the first";
  ASSERT_TRUE(caches.prepare(4, tokens(60), 1));
  ASSERT_TRUE(caches.prepare(5, tokens(60), 1));
  const auto refused = caches.prepare(6, tokens(60), 1);
  ASSERT_FALSE(refused) << "all are of this launch";
  EXPECT_NE(refused.error().message.find("--kv-memory"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace troupe::test
