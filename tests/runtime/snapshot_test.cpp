// Sessions in files: what is loaded goes on with the same bits, and what was damaged is refused.
#include "runtime/snapshot.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "runtime/snapshot_file.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/promise.h"
#include "tests/support/sampling.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

class Snapshots : public testing::Test {
 protected:
  Snapshots() : model_(write_tiny_model(tiny_model(DType::q4_0), folder_.file("model.gguf"))), engine_(start()) {}

  std::unique_ptr<Engine> start() const { return open_engine(model_, tiny_options({"auto", 1})); }
  static SnapshotHome home(const Engine& engine) {
    return {engine.fingerprint(), engine.text().vocabulary, engine.pages()};
  }

  // Computes what the cache lacks of `tokens`, and gives `count` sampled tokens more.
  static std::vector<TokenId> go_on(Engine& engine, KvCache& cache, std::vector<TokenId> tokens, int count) {
    SamplingParams sampling;
    sampling.temperature = 1.0f;
    sampling.seed = 5;
    std::vector<TokenId> answer;
    EXPECT_TRUE(cache.reserve(std::ssize(tokens) + count));
    for (int i = 0; i < count; ++i) {
      const auto from = static_cast<std::size_t>(cache.length());
      const KvLease lease = cache.lend();
      Slice slice{.cache = &lease,
                  .position = cache.length(),
                  .tokens = std::span(tokens).subspan(from),
                  .wants_token = true,
                  .sampling = &sampling};
      engine.run({&slice, 1});
      cache.commit(std::ssize(tokens));
      tokens.push_back(slice.sampled.token);
      answer.push_back(slice.sampled.token);
    }
    return answer;
  }

  Conversation talk(std::vector<TokenId> tokens) const {
    return {{{"user", "hello"}, {"assistant", "half a \xe6\x97"}}, std::move(tokens), *engine_->text().vocabulary};
  }
  // A session of 40 tokens, 39 of them computed, saved as "chat".
  void save_one() {
    const std::vector<TokenId> tokens = random_tokens(random_, 40, engine_->shape().vocabulary);
    KvCache cache(engine_->pages());
    go_on(*engine_, cache, tokens, 1);
    cache.truncate(39);
    const auto saved = save_snapshot(path_, home(*engine_), {"alice", {}, {}}, talk(tokens), cache);
    ASSERT_TRUE(saved) << saved.error().message;
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_refused(const std::string& bytes, const std::string& what) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    const auto used = engine_->pages()->used();
    const auto loaded = load_snapshot(path_, home(*engine_));
    ASSERT_FALSE(loaded) << what;
    ASSERT_NE(loaded.error().message.find(path_), std::string::npos) << loaded.error().message;
    ASSERT_EQ(engine_->pages()->used(), used) << what;
  }

  ScratchFolder folder_;
  std::string model_;
  std::unique_ptr<Engine> engine_;
  Random random_{9};
  std::string path_ = folder_.file("chat");
};

TEST_F(Snapshots, at_every_token_of_an_answer_another_process_goes_on_with_the_same_bits_and_computes_nothing_again) {
  const std::vector<TokenId> prompt = random_tokens(random_, 21, engine_->shape().vocabulary);
  KvCache whole(engine_->pages());
  const std::vector<TokenId> answer = go_on(*engine_, whole, prompt, 20);
  std::vector<TokenId> tokens = prompt;
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  for (std::size_t at = 0; at < answer.size(); ++at) {
    const auto length = static_cast<std::ptrdiff_t>(prompt.size() + at + 1);  // the last is pending
    const std::vector<TokenId> so_far(tokens.begin(), tokens.begin() + length);
    ASSERT_TRUE(save_snapshot(path_, home(*engine_), {}, talk(so_far), whole.fork(length - 1)));
    const auto other = start();
    auto loaded = load_snapshot(path_, home(*other));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->conversation.tokens(), so_far);
    const int left = static_cast<int>(answer.size() - at) - 1;
    if (left == 0) continue;
    const std::vector<TokenId> rest = go_on(*other, loaded->cache, loaded->conversation.tokens(), left);
    EXPECT_EQ(rest, (std::vector<TokenId>(answer.end() - left, answer.end()))) << "saved after token " << at;
    EXPECT_EQ(other->counters().rows, static_cast<std::uint64_t>(left)) << "one row a token, no prompt";
  }
  promise("N5", "at each of " + std::to_string(answer.size()) + " tokens of an answer: same bits, no prompt row");
}

TEST_F(Snapshots, keep_messages_marks_and_bytes_that_are_no_text) {
  Conversation::Parts parts;
  parts.messages = {{"system", "\"quoted\" \x01"},
                    {"user",
                     "gr\xc3\xb6\xc3\x9f"
                     "e"},
                    {"assistant", "cut \xe6\x97"}};
  parts.tokens = random_tokens(random_, 9, engine_->shape().vocabulary);
  parts.marks = {{0, 1, false}, {5, 2, true}, {9, 3, false}};
  parts.leftover = std::string("\x00\xff\x80", 3);
  const auto before = Conversation::from(parts, *engine_->text().vocabulary);
  ASSERT_TRUE(before);
  SamplingParams sampling;
  sampling.temperature = 0.3f;
  sampling.top_p = 0.1f + 0.2f;
  sampling.seed = ~std::uint64_t{0};
  sampling.logit_bias = {{7, -1.1f}};
  ASSERT_TRUE(save_snapshot(path_, home(*engine_), {"k\xffy", sampling, {64, 3}}, *before, KvCache(engine_->pages())));
  const auto after = load_snapshot(path_, home(*engine_));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->settings.key, "k\xffy");
  EXPECT_EQ(after->settings.window.tokens, 64);
  EXPECT_EQ(after->settings.window.sinks, 3);
  EXPECT_EQ(after->settings.sampling.temperature, sampling.temperature);
  EXPECT_EQ(after->settings.sampling.top_p, sampling.top_p);
  EXPECT_EQ(after->settings.sampling.seed, sampling.seed);
  EXPECT_EQ(after->settings.sampling.logit_bias, sampling.logit_bias);
  EXPECT_EQ(after->conversation.messages(), parts.messages);
  EXPECT_EQ(after->conversation.tokens(), parts.tokens);
  EXPECT_EQ(after->conversation.parts().leftover, parts.leftover);
  EXPECT_EQ(after->conversation.until(7, *engine_->text().vocabulary).messages().size(), 3u) << "the marks are there";
  EXPECT_EQ(after->cache.length(), 0);
}

TEST_F(Snapshots, keep_every_rule_of_sampling) {
  const SamplingParams all = every_rule();
  ASSERT_TRUE(save_snapshot(path_, home(*engine_), {"", all, {}}, Conversation(""), KvCache(engine_->pages())));
  const auto loaded = load_snapshot(path_, home(*engine_));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->settings.sampling, all);
}

TEST_F(Snapshots, that_are_cut_anywhere_are_refused_before_a_page_is_taken) {
  save_one();
  const std::string whole = content();
  for (std::size_t size = 0; size < whole.size(); size += size < 600 ? 1 : 61) {
    expect_refused(whole.substr(0, size), "cut to " + std::to_string(size));
    ASSERT_FALSE(HasFatalFailure());
  }
  expect_refused(whole + "x", "one byte longer");
  promise("N5", "every cut refused");
}

TEST_F(Snapshots, with_any_bit_turned_are_refused_before_a_page_is_taken) {
  save_one();
  const std::string whole = content();
  const int count = small_scale() ? 500 : 10'000;
  for (int i = 0; i < count; ++i) {
    std::string turned = whole;
    const auto at = static_cast<std::size_t>(i < 320 ? i / 8 : random_.below(std::ssize(whole)));
    turned[at] = static_cast<char>(turned[at] ^ 1 << (i % 8));
    expect_refused(turned, "bit " + std::to_string(i % 8) + " of byte " + std::to_string(at));
    ASSERT_FALSE(HasFatalFailure());
  }
  promise("N5", with_commas(count) + " turned bits refused");
}

// Files with a right checksum that say wrong things: written by us with a header of the test's.
TEST_F(Snapshots, that_are_whole_and_say_nonsense_are_refused) {
  save_one();
  const auto file = SnapshotFile::open(path_);
  ASSERT_TRUE(file);
  const std::string header = file->header();
  std::string payload;
  ASSERT_TRUE(file->read_payload([&](std::string_view part) { payload += part; }));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = header;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? changed : changed.replace(at, from.size(), to);
  };
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& bad : {std::string(),
                                 std::string("{}"),
                                 std::string("[1]"),
                                 std::string("nothing"),
                                 deep,
                                 with("\"cached\":39", "\"cached\":40"),
                                 with("\"cached\":39", "\"cached\":-1"),
                                 with("\"cached\":39", "\"cached\":\"x\""),
                                 with("\"tokens\":[", "\"tokens\":[-5,"),
                                 with("\"tokens\":[", "\"tokens\":[99999999,"),
                                 with("\"tokens\":[", "\"tokens\":[4294967296,"),
                                 with("\"tokens\":[", "\"tokens\":[1e300,"),
                                 with("\"cached\":39", "\"cached\":39.5"),
                                 with("\"marks\":[[0,", "\"marks\":[[1,"),
                                 with("\"marks\":[[0,0", "\"marks\":[[0,77"),
                                 with("\"fingerprint\":", "\"fingerprint\":1"),
                                 with("\"layout\":[", "\"layout\":[1"),
                                 with("\"layout\":[", "\"layout\":[0,0,0,7],\"other\":["),
                                 with("\"layout\":[", "\"layout\":[0],\"other\":["),
                                 with("\"messages\"", "\"message\""),
                                 with("\"temperature\":", "\"temperature\":-")}) {
    ASSERT_TRUE(write_snapshot_file(path_, bad, payload.size(), [&](const WritePart& write) { write(payload); }));
    expect_refused(content(), bad.substr(0, 200));
  }
}

TEST_F(Snapshots, with_marks_that_fall_are_refused) {
  Conversation::Parts parts;
  parts.messages = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  parts.tokens = random_tokens(random_, 10, engine_->shape().vocabulary);
  for (const std::vector<Conversation::Mark>& marks :
       {std::vector<Conversation::Mark>{{0, 3, false}, {5, 0, false}}, {{0, 0, false}, {7, 1, false}, {5, 2, false}}}) {
    parts.marks = marks;
    EXPECT_FALSE(Conversation::from(parts, *engine_->text().vocabulary));
  }
}

TEST_F(Snapshots, longer_than_the_context_are_refused) {
  save_one();
  SnapshotHome narrow = home(*engine_);
  narrow.context = 39;
  const auto refused = load_snapshot(path_, narrow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::context_length);
  narrow.context = 40;
  EXPECT_TRUE(load_snapshot(path_, narrow));
}

TEST_F(Snapshots, of_another_model_or_precision_are_refused) {
  save_one();
  const std::string own = name(engine_->pages()->layout().type);
  for (KvType type : kKvTypes) {
    EngineOptions options = tiny_options({"auto", 1});
    options.kv_type = type;
    const auto other = open_engine(model_, options);
    const auto loaded = load_snapshot(path_, home(*other));
    ASSERT_EQ(loaded.ok(), name(type) == own) << name(type);
    if (loaded) continue;
    EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
    EXPECT_NE(loaded.error().message.find("values are " + own + ", this host's " + name(type)), std::string::npos)
        << loaded.error().message;
  }
  SnapshotHome stranger = home(*engine_);
  stranger.fingerprint ^= 1;
  EXPECT_FALSE(load_snapshot(path_, stranger));
}

TEST_F(Snapshots, are_loaded_without_their_cache_where_there_is_no_room) {
  save_one();
  KvCache all(engine_->pages());
  ASSERT_TRUE(all.reserve(engine_->pages()->total() * KvLayout::kPageTokens));
  auto crowded = load_snapshot(path_, home(*engine_));
  ASSERT_TRUE(crowded) << crowded.error().message;
  EXPECT_EQ(crowded->cache.length(), 0);
  EXPECT_EQ(crowded->conversation.tokens().size(), 40u);
  SnapshotHome roomy = home(*engine_);
  roomy.make_room = [&](std::int64_t) { all = KvCache(engine_->pages()); };
  EXPECT_EQ(load_snapshot(path_, roomy)->cache.length(), 39);
}

TEST_F(Snapshots, name_what_is_no_file_of_theirs) {
  const auto missing = load_snapshot(folder_.file("none"), home(*engine_));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_FALSE(load_snapshot(model_, home(*engine_)));
  EXPECT_FALSE(load_snapshot("/dev/zero", home(*engine_)));
  EXPECT_FALSE(load_snapshot(std::filesystem::path(path_).parent_path(), home(*engine_)));
  EXPECT_FALSE(save_snapshot("/dev/full", home(*engine_), {}, talk({}), KvCache(engine_->pages())));
}

}  // namespace
}  // namespace troupe::test
