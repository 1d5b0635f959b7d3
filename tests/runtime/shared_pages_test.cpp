// A page that another sequence computed gives the bits that computing it anew would give: prefixes and forks, on every
// path of this processor.
#include <cstring>
#include <gtest/gtest.h>

#include "runtime/kv/prefix_index.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

class SharedPages : public testing::TestWithParam<std::string> {
 protected:
  SharedPages()
      : path_(write_tiny_model(tiny_model(DType::q4_k), folder_.file("model.gguf"))),
        engine_(open_engine(path_, tiny_options({GetParam(), 2}))) {}

  std::vector<TokenId> text(std::int64_t count) { return random_tokens(random_, count, engine_->shape().vocabulary); }

  // Computes what `cache` lacks of `tokens`, and compares all its logits with a sequence that starts from nothing.
  void expect_as_from_nothing(KvCache& cache, const std::vector<TokenId>& tokens, const std::string& what) {
    const auto vocabulary = static_cast<std::size_t>(engine_->shape().vocabulary);
    const std::vector<float> expected = all_logits(*engine_, tokens);
    const auto from = static_cast<std::size_t>(cache.length());
    std::vector<float> logits((tokens.size() - from) * vocabulary);
    ASSERT_TRUE(cache.reserve(std::ssize(tokens)));
    for (std::size_t at = from, step = 1; at < tokens.size(); at += step, step = step % 7 + 1) {
      const std::size_t rows = step = std::min(step, tokens.size() - at);
      const KvLease lease = cache.lend();
      Slice slice{.cache = &lease,
                  .position = static_cast<std::int64_t>(at),
                  .tokens = std::span(tokens).subspan(at, rows),
                  .logits = std::span(logits).subspan((at - from) * vocabulary, rows * vocabulary)};
      engine_->run({&slice, 1});
      ASSERT_FALSE(slice.failed) << what << ": " << slice.failure;
      cache.commit(static_cast<std::int64_t>(at + rows));
    }
    ASSERT_EQ(std::memcmp(logits.data(), expected.data() + from * vocabulary, logits.size() * sizeof(float)), 0)
        << what;
  }

  ScratchFolder folder_;
  std::string path_;
  std::unique_ptr<Engine> engine_;
  Random random_{3};
};

TEST_P(SharedPages, a_prefix_that_was_found_gives_the_bits_of_one_that_was_computed) {
  PrefixIndex index(engine_->pages(), 1'000);
  const std::vector<TokenId> common = text(70);
  KvCache first(engine_->pages());
  expect_as_from_nothing(first, common, "the first");
  index.publish("", common, first.full_pages());
  const auto before = engine_->counters().rows;
  for (int other = 0; other < 5; ++other) {
    std::vector<TokenId> tokens = common;
    tokens.resize(static_cast<std::size_t>(66 + other));
    for (TokenId token : text(20)) tokens.push_back(token);
    KvCache cache(engine_->pages());
    auto prefix = index.find("", std::span(tokens).first(tokens.size() - 1));
    cache.begin_with(*prefix);
    ASSERT_EQ(cache.length(), 64);
    expect_as_from_nothing(cache, tokens, "sequence " + std::to_string(other));
  }
  // Each was computed from nothing once, and beside that only from its 64 shared tokens on.
  EXPECT_EQ(engine_->counters().rows - before, 2 * (86 + 87 + 88 + 89 + 90) - 5 * 64);
}

TEST_P(SharedPages, branches_at_every_token_are_what_separate_sequences_are) {
  std::vector<TokenId> trunk = text(41);
  KvCache origin(engine_->pages());
  expect_as_from_nothing(origin, trunk, "the origin");
  for (std::int64_t at = 1; at <= 41; ++at) {
    KvCache branch = origin.fork(at);
    std::vector<TokenId> tokens(trunk.begin(), trunk.begin() + at);
    for (TokenId token : text(5)) tokens.push_back(token);
    trunk.push_back(text(1)[0]);
    expect_as_from_nothing(origin, trunk, "the origin after a fork at " + std::to_string(at));
    expect_as_from_nothing(branch, tokens, "a branch at " + std::to_string(at));
  }
}

INSTANTIATE_TEST_SUITE_P(Path, SharedPages, testing::ValuesIn(supported_paths()), [](const auto& suite) {
  return std::string(suite.param == "avx-vnni" ? "avx_vnni" : suite.param);
});

}  // namespace
}  // namespace troupe::test
