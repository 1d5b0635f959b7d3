// Records: what is written is read again, what is damaged stops with a sentence, and what cannot be is refused.
#include <cstring>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>

#include "runtime/record/fields.h"
#include "runtime/record/record_header.h"
#include "runtime/record/recorder.h"
#include "runtime/record/replay.h"
#include "runtime/sampling/memory.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/promise.h"
#include "tests/support/record_bytes.h"
#include "tests/support/sampling.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

constexpr TokenId kAlways = 77;

class Records : public testing::Test {
 protected:
  Records() : model_(write_tiny_model(tiny_model(DType::q4_0), folder_.file("model.gguf"))) {
    EngineOptions options = tiny_options({"auto", 1});
    options.max_rows = 16;
    engine_ = open_engine(model_, options);
    header_ = record_header(*engine_, model_, options);
    bytes_ = record();
  }

  // A session without actors: one greedy on one token, which guesses, itself or by a draft model, and two with every
  // rule of sampling.
  struct Talking {
    SessionId session;
    std::shared_ptr<const SamplingParams> sampling;
    KvCache cache;
    std::vector<TokenId> tokens;
    std::shared_ptr<SamplerState> state;

    Step step() {
      Step step;
      step.session = session;
      step.key = session == 7 ? "key" : "";
      step.background = session == 9;
      if (cache.length() == 0) step.past = std::make_shared<const std::vector<TokenId>>();
      step.tokens.assign(tokens.begin() + cache.length(), tokens.end());
      if (session == 8 && cache.length() > 0 && cache.length() / 2 % 2 == 0)
        step.tokens.insert(step.tokens.end(), {kAlways, 5});
      step.drafts = step.tokens.size() == 3 ? 2 : 0;
      step.draft_odds = 0.9f;
      step.cache = cache.lend();
      step.sampling = sampling;
      step.state = state;
      step.logprobs = static_cast<std::int32_t>(session) - 7;
      return step;
    }
    void take(const StepTokens& drawn, const Vocabulary& vocabulary) {
      cache.commit(std::ssize(tokens) + std::ssize(drawn.after));
      accept(drawn.first, vocabulary);
      for (const Sampled& sampled : drawn.after) accept(sampled, vocabulary);
    }
    void accept(const Sampled& sampled, const Vocabulary& vocabulary) {
      tokens.push_back(sampled.token);
      if (state) state = accepted(std::move(state), *sampling, sampled, vocabulary);
    }
  };

  Talking talking(SessionId session) {
    SamplingParams sampling = session == 8 ? SamplingParams::greedy() : every_rule();
    if (session == 8) sampling.logit_bias = {{kAlways, 100.0f}};
    Talking one{session, std::make_shared<const SamplingParams>(sampling), KvCache(engine_->pages()),
                random_tokens(random_, 13 + static_cast<std::int64_t>(session), engine_->shape().vocabulary), nullptr};
    EXPECT_TRUE(one.cache.reserve(64));
    one.state = first_memory(sampling, one.tokens, *engine_->text().vocabulary);
    return one;
  }

  // A batcher without actors, whose launches all take as long.
  std::string record() {
    std::string bytes;
    const WritePart append = [&](std::string_view part) {
      bytes += part;
      return true;
    };
    const KeyWeights weights = *KeyWeights::of({{"key", 2}});
    Recorder recorder(std::make_shared<RecordWriter>(append, header_),
                      {16, true, StepQueue::kLinger, weights.by_key()});
    const RunBatch run = recorder.watched([this](std::span<Slice> batch) { engine_->run(batch); });
    StepQueue queue(16, StepQueue::kLinger, weights);
    std::vector<Talking> talkers;
    for (SessionId session = 7; session < 10; ++session) talkers.push_back(talking(session));
    std::vector<Talking*> back;
    for (Talking& talker : talkers) back.push_back(&talker);
    for (TimePoint now{std::chrono::seconds(100)}; !queue.empty() || !back.empty(); now += std::chrono::seconds(1)) {
      for (Talking* talker : std::exchange(back, {})) {
        if (std::ssize(talker->tokens) > 30) {
          recorder.left(talker->session);
          queue.leave(talker->session);
          continue;
        }
        Step step = talker->step();
        recorder.arrived(step);
        queue.push(std::move(step), [&back, talker, this](const Result<StepTokens>& drawn) {
          talker->take(*drawn, *engine_->text().vocabulary);
          back.push_back(talker);
        });
      }
      if (queue.empty()) break;
      launch(recorder, queue, run, now);
    }
    recorder.write();
    return bytes;
  }

  static void launch(Recorder& recorder, StepQueue& queue, const RunBatch& run, TimePoint now) {
    if (!queue.ready(now - std::chrono::seconds(1))) recorder.read_clock(now - std::chrono::seconds(1));
    for (const Step* step : queue.decoding()) {
      if (step->session != 8 || step->drafts > 0) continue;
      const std::vector<TokenId> guesses{kAlways, 5};
      recorder.guessed(8, guesses, 0.9f);
      queue.guess(8, guesses, 0.9f);
    }
    const auto batch = queue.gather();
    recorder.gathered(now, batch);
    run_launch(run, batch, true);
    recorder.ended(now, Seconds(0.25), batch);
    queue.finish(now, Seconds(0.25));
  }

  static std::vector<RecordEvent> read(const std::string& bytes) { return events_of(*RecordReader::view(bytes, "r")); }
  Result<ReplayReport> replay_of(const std::string& bytes) {
    auto reader = RecordReader::view(bytes, "changed.record");
    if (!reader) return reader.error();
    return replay(*reader, *engine_);
  }

  ScratchFolder folder_;
  std::string model_;
  std::unique_ptr<Engine> engine_;
  Random random_{9};
  RecordHeader header_;
  std::string bytes_;
};

TEST_F(Records, that_are_read_and_written_again_are_the_same_bytes_and_replay) {
  const auto events = read(bytes_);
  EXPECT_TRUE(record_bytes(header_, events) == bytes_);
  EXPECT_TRUE(std::get<StepArrived>(events[1]).origin->sampling == every_rule());
  const auto report = replay_of(bytes_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->all_equal()) << report->first_difference;
  EXPECT_EQ(report->equal_answers, report->answers);
  EXPECT_GT(report->tokens, report->answers) << "guesses were right";
}

TEST_F(Records, that_are_cut_anywhere_are_good_up_to_there) {
  const std::size_t all = read(bytes_).size(), header = record_bytes(header_, {}).size();
  std::size_t before = 0;
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    const std::string cut = bytes_.substr(0, size);
    auto reader = RecordReader::view(cut, "cut.record");
    if (!reader) {
      ASSERT_EQ(before, 0u) << "cut to " << size;
      ASSERT_NE(reader.error().message.find("cut.record"), std::string::npos) << reader.error().message;
      continue;
    }
    std::size_t events = 0;
    while (auto event = reader->next()) {
      if (!*event) break;
      ++events;
    }
    ASSERT_TRUE(events == before || events == before + 1) << "cut to " << size;
    ASSERT_EQ(reader->torn(), events == before && size != header) << "cut to " << size;
    before = events;
  }
  EXPECT_EQ(before, all - 1);
}

TEST_F(Records, with_any_bit_turned_are_refused_or_stop_before_what_was_turned) {
  const auto events = read(bytes_);
  const int count = small_scale() ? 1000 : 10'000;
  for (int i = 0; i < count; ++i) {
    std::string turned = bytes_;
    const auto at = static_cast<std::size_t>(i < 1600 ? i / 8 : random_.below(std::ssize(turned)));
    turned[at] = static_cast<char>(turned[at] ^ 1 << (i % 8));
    auto reader = RecordReader::view(turned, "turned");
    if (!reader) continue;
    std::vector<RecordEvent> good;
    bool stopped = false;
    while (!stopped) {
      auto event = reader->next();
      stopped = !event || !*event;
      if (!stopped) good.push_back(std::move(**event));
    }
    ASSERT_LT(good.size(), events.size()) << "bit " << i % 8 << " of byte " << at;
    const std::vector<RecordEvent> same(events.begin(), events.begin() + std::ssize(good));
    ASSERT_TRUE(record_bytes(header_, good) == record_bytes(header_, same)) << "byte " << at;
  }
  promise("N13", "records with " + with_commas(count) + " turned bits refused, or good up to there");
}

// With right checksums, as an enemy would write them.
TEST_F(Records, that_say_what_cannot_be_are_refused_and_break_nothing) {
  using Events = std::vector<RecordEvent>;
  const std::int64_t vocabulary = engine_->shape().vocabulary;
  const auto origin = [](Events& events) -> StepOrigin& { return *nth<StepArrived>(events, 0).origin; };
  const std::vector<std::function<void(Events&)>> lies{
      [](Events& e) { e.erase(e.begin()); },
      [](Events& e) { nth<BatcherBegan>(e, 0).max_rows = 0; },
      [](Events& e) { nth<BatcherBegan>(e, 0).max_rows = 17; },
      [](Events& e) { nth<BatcherBegan>(e, 0).linger = std::chrono::nanoseconds::max(); },
      [](Events& e) { nth<BatcherBegan>(e, 0).weights["x"] = 0; },
      [](Events& e) { nth<StepArrived>(e, 0).tokens.clear(); },
      [](Events& e) { nth<StepArrived>(e, 0).tokens[1] = -1; },
      [&](Events& e) { nth<StepArrived>(e, 0).tokens[1] = static_cast<TokenId>(vocabulary); },
      [](Events& e) { nth<StepArrived>(e, 0).tokens.resize(5000, 5); },
      [](Events& e) { nth<StepArrived>(e, 0).position = -1; },
      [](Events& e) { nth<StepArrived>(e, 0).position = 3; },
      [](Events& e) { nth<StepArrived>(e, 0).position = std::numeric_limits<std::int64_t>::max(); },
      [](Events& e) { nth<StepArrived>(e, 0).logprobs = std::numeric_limits<std::int32_t>::max(); },
      [](Events& e) { nth<StepArrived>(e, 0).drafts = 3; },
      [](Events& e) { nth<StepArrived>(e, 4).drafts = 1; },
      [](Events& e) { nth<StepArrived>(e, 4).draft_odds = std::numeric_limits<float>::quiet_NaN(); },
      [](Events& e) { nth<LaunchEnded>(e, 5).outcomes[0].after.resize(1); },
      [](Events& e) { nth<StepArrived>(e, 0).origin.reset(); },
      [](Events& e) { nth<StepArrived>(e, 4).position = 500; },
      [&](Events& e) { origin(e).sampling.temperature = -1.0f; },
      [&](Events& e) {
        origin(e).sampling.logit_bias = {{static_cast<TokenId>(vocabulary), 1.0f}};
      },
      [&](Events& e) { origin(e).state->in_prompt[-3] = 1; },
      [&](Events& e) { origin(e).state->in_answer[5] = std::numeric_limits<std::int32_t>::max(); },
      [&](Events& e) { origin(e).state->history[0] = static_cast<TokenId>(vocabulary); },
      [&](Events& e) { origin(e).state->breaks.pop_back(); },
      [](Events& e) { nth<BatchGathered>(e, 0).withdrawn = {99}; },
      [](Events& e) { nth<BatchGathered>(e, 0).now = TimePoint::max(); },
      [](Events& e) { nth<LaunchEnded>(e, 0).now = TimePoint::min(); },
      [](Events& e) { nth<LaunchEnded>(e, 0).took = Seconds(std::numeric_limits<double>::quiet_NaN()); },
      [](Events& e) { nth<LaunchEnded>(e, 0).took = Seconds(-1.0); },
      [](Events& e) { nth<LaunchEnded>(e, 0).outcomes.pop_back(); },
      [](Events& e) { nth<LaunchEnded>(e, 5).outcomes[0].sampled->token = -7; },
      [](Events& e) { nth<LaunchEnded>(e, 5).outcomes[0].sampled.reset(); },
      [](Events& e) { nth<LaunchEnded>(e, 5).outcomes[0].failure = "and a token"; },
      [](Events& e) { e.insert(e.begin() + 1, LaunchEnded{}); },
      [&](Events& e) { nth<StepGuessed>(e, 0).tokens[0] = static_cast<TokenId>(vocabulary); },
      [](Events& e) { nth<StepGuessed>(e, 0).tokens.resize(5000, 5); },
      [](Events& e) { nth<StepGuessed>(e, 0).odds = -0.5f; },
      [](Events& e) { nth<StepGuessed>(e, 0).session = 99; },
      [](Events& e) {
        e.insert(e.begin() + 2, StepGuessed{7, {5}, 0.5f});
      },  // for a prompt
      [](Events& e) {
        const auto batch =
            std::ranges::find_if(e, [](auto& one) { return std::holds_alternative<BatchGathered>(one); });
        e.insert(batch + 1, SessionLeft{7});
      },
      [](Events& e) {  // a step that its session has overtaken
        nth<StepArrived>(e, 1).session = 7;
        nth<StepArrived>(e, 1).tokens.resize(2);
        for (auto& slice : nth<BatchGathered>(e, 0).slices) slice.session = 7;
      },
      [](Events& e) {  // two steps of one session in a launch
        nth<StepArrived>(e, 1).session = 7;
        for (auto& slice : nth<BatchGathered>(e, 0).slices) slice.session = 7;
      },
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    auto events = read(bytes_);
    lies[i](events);
    const auto report = replay_of(record_bytes(header_, events));
    ASSERT_FALSE(report) << "lie " << i << ": " << report->first_difference;
    EXPECT_NE(report.error().message.find("changed.record"), std::string::npos) << report.error().message;
    EXPECT_EQ(engine_->pages()->used(), 0) << "lie " << i;
  }
}

// The record with these bytes for its events, each a kind and its fields, and checksums that are right.
std::string framed(const RecordHeader& header, const std::vector<std::string>& events) {
  std::string bytes = record_bytes(header, {});
  Fnv64 hash;
  hash.add(std::string_view(bytes).substr(0, bytes.size() - sizeof(std::uint64_t)));
  FieldWriter put(bytes);
  for (const std::string& event : events) {
    const std::size_t begin = bytes.size();
    put(static_cast<std::uint32_t>(event.size()));
    bytes += event;
    hash.add(std::string_view(bytes).substr(begin));
    put(hash.value());
  }
  return bytes;
}

// The bytes of each event of a record.
std::vector<std::string> events_in(std::string_view bytes, std::size_t header) {
  std::vector<std::string> events;
  for (std::uint32_t size = 0; header < bytes.size(); header += sizeof size + size + sizeof(std::uint64_t)) {
    std::memcpy(&size, bytes.data() + header, sizeof size);
    events.emplace_back(bytes.substr(header + sizeof size, size));
  }
  return events;
}

TEST_F(Records, with_any_bytes_in_them_and_right_checksums_break_nothing) {
  const auto events = events_in(bytes_, record_bytes(header_, {}).size());
  ASSERT_TRUE(framed(header_, events) == bytes_);
  int replayed = 0;
  for (int i = small_scale() ? 300 : 3000; i > 0; --i) {
    auto turned = events;
    for (std::int64_t changes = 1 + random_.below(3); changes > 0; --changes) {
      std::string& event = turned[static_cast<std::size_t>(random_.below(std::ssize(turned)))];
      auto& byte = event[static_cast<std::size_t>(random_.below(std::ssize(event)))];
      byte = static_cast<char>(random_.below(2) == 0 ? random_.below(256) : byte ^ 1 << random_.below(8));
    }
    const auto report = replay_of(framed(header_, turned));
    replayed += report ? 1 : 0;
    ASSERT_EQ(engine_->pages()->used(), 0) << i;
  }
  EXPECT_GT(replayed, 0) << "some change what is compared, and no more";
}

TEST_F(Records, get_no_more_memory_than_half_of_the_machines) {
  header_.kv_memory = ~std::uint64_t{0};
  EXPECT_LT(replay_options(header_)->kv_memory, std::uint64_t{1} << 47) << "a share of this machine's";
  header_.kv_type = 200;
  EXPECT_FALSE(replay_options(header_));
}

// A length that no bytes follow makes no memory: the list has 2^60 items by its own account.
TEST_F(Records, whose_lists_are_longer_than_the_file_are_refused) {
  std::string event;
  FieldWriter put(event);
  put(std::uint8_t{4}, TimePoint{}, std::uint64_t{1} << 60);
  const std::string bytes = framed(header_, {event});
  auto reader = RecordReader::view(bytes, "r");
  ASSERT_TRUE(reader);
  const auto refused = reader->next();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot hold that many"), std::string::npos) << refused.error().message;
}

TEST_F(Records, are_new_files_that_only_their_owner_reads) {
  const std::string path = folder_.file("one.record");
  {
    auto writer = RecordWriter::create(path, header_);
    ASSERT_TRUE(writer) << writer.error().message;
    (*writer)->add(SessionLeft{7});
  }
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  auto reader = RecordReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(std::get<SessionLeft>(**reader->next()).session, 7u);
  const auto again = RecordWriter::create(path, header_);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("never overwritten"), std::string::npos) << again.error().message;
  EXPECT_FALSE(RecordWriter::create(folder_.file("no/such"), header_));
}

TEST_F(Records, that_find_no_room_end_with_one_error_and_are_good_up_to_there) {
  std::string written;
  RecordWriter writer(
      [&](std::string_view part) {
        if (written.size() > 200) return false;
        written += part;
        return true;
      },
      header_);
  int errors = 0;
  for (SessionId session = 0; session < 50; ++session) {
    writer.add(SessionLeft{session});
    errors += writer.write() ? 1 : 0;
  }
  EXPECT_EQ(errors, 1);
  const auto events = read(written);
  ASSERT_GT(events.size(), 0u);
  ASSERT_LT(events.size(), 50u);
  EXPECT_EQ(std::get<SessionLeft>(events.back()).session, events.size() - 1);
}

}  // namespace
}  // namespace troupe::test
