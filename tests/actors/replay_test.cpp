// A house with a record: whatever happens in it, the record replays to the same batches and the same bits.
#include "runtime/record/replay.h"

#include <algorithm>

#include "runtime/record/record_header.h"
#include "tests/actors/actor_lab.h"
#include "tests/support/record_bytes.h"

namespace troupe::test {
namespace {

constexpr std::uint64_t kFaultySeed = 666;  // its steps throw, from a certain position on
constexpr std::int64_t kPages = 150;        // too few for all sessions: some sleep, and a replay drops some

EngineOptions house_options() {
  return lab_options(kPages);
}

std::unique_ptr<Engine> other_engine(const std::string& isa, int threads) {
  EngineOptions options = house_options();
  options.isa = isa;
  options.threads = threads;
  auto engine = Engine::open(tiny_path(), options);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

// A house whose engine dies twice and stumbles over one session, with sessions of every kind in it.
class RecordedHouse {
 public:
  explicit RecordedHouse(std::shared_ptr<RecordWriter> record)
      : lab_(options(std::move(record)), house_options(), tiny_path(), SleepOptions{.memory = std::uint64_t{1} << 20}) {
    engine_ = lab_.shared_engine();
  }
  ~RecordedHouse() {
    lab_.stop();
    engine_.reset();
  }

  void live() {
    start_crowd();
    fork_in_mid_answer();
    strike();
    finish();
    chat_on();
    EXPECT_EQ(lab_.describe().batcher_restarts, 2);
  }

 private:
  using Pending = decltype(std::declval<caf::scoped_actor&>()->request(SessionActor(), std::chrono::seconds(60),
                                                                       say_atom_v, Turn()));

  SupervisorOptions options(std::shared_ptr<RecordWriter> record) {
    SupervisorOptions options;
    options.record = std::move(record);
    options.drafts = 4;
    options.draft = DraftEngine::of(other_engine("auto", 1));
    options.weights = *KeyWeights::of({{"heavy", 3}});
    options.run = [this](std::span<Slice> batch) {
      if (const int call = ++calls_; call == 25 || call == 60) throw DeviceFault("the device is gone");
      for (const Slice& slice : batch) {
        if (slice.sampling->seed == kFaultySeed && slice.position > 50) throw StepFault("a step that cannot be");
      }
      engine_->run(batch);
    };
    return options;
  }

  SessionActor start(const Turn& turn, OpenSession opening = {}) {
    sessions_.push_back(lab_.open(std::move(opening)));
    pending_.push_back(lab_.self()->request(sessions_.back(), std::chrono::seconds(60), say_atom_v, turn));
    return sessions_.back();
  }

  static Turn remembering(int which) {
    Turn turn = token_turn(prompt(which, 30), 60, static_cast<std::uint64_t>(which));
    turn.sampling->repetition_penalty = 1.2f;
    turn.sampling->frequency_penalty = 0.3f;
    turn.sampling->dry_multiplier = 1.5f;
    turn.sampling->dry_allowed_length = 1;
    turn.sampling->mirostat = which % 2 == 0 ? 2 : 0;
    turn.sampling->xtc_probability = 0.5f;
    return turn;
  }

  void start_crowd() {
    for (int i = 0; i < 6; ++i) {  // with a common beginning, of two keys
      Turn turn = token_turn(joined(prompt(1, 70), prompt(10 + i, 9)), 40, static_cast<std::uint64_t>(i));
      turn.background = i % 3 == 0;
      turn.logprobs = i % 2 == 0 ? 3 : -1;
      start(turn, {.key = i < 3 ? "heavy" : ""});
    }
    for (int i = 0; i < 4; ++i) start(remembering(20 + i));
    start(token_turn(prompt(30, 40), 150), {.window = {64, 4}});
    start(token_turn(prompt(31, 45), 40, kFaultySeed));
    Turn processed = token_turn(prompt(32, 20), 30);
    processed.logits_processor = [](std::span<float> logits, std::span<const TokenId>) { logits[77] += 5.0f; };
    start(processed);
    processed.logits_processor = [](std::span<float>, std::span<const TokenId> tokens) {
      if (tokens.size() == 35) throw std::runtime_error("no rule for place 35");
    };
    start(processed);
    Turn healed = token_turn({}, 20);
    healed.kind = Turn::Kind::text;
    healed.text = "the wor";
    healed.heal = true;
    start(healed);
    start(token_turn(prompt(33, 700), 10));  // in slices
  }

  void fork_in_mid_answer() {
    while (lab_.engine().counters().sampled < 40) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) {
      auto branch =
          lab_.ask<SessionActor>(lab_.host(), fork_atom_v, sessions_[static_cast<std::size_t>(i)], std::int64_t{-1});
      ASSERT_TRUE(branch) << branch.error().message;
      sessions_.push_back(*branch);
      pending_.push_back(
          lab_.self()->request(*branch, std::chrono::seconds(60), say_atom_v, token_turn(prompt(50 + i, 4), 20, 9)));
    }
  }

  // Stopped, closed, killed: none of these answers.
  void strike() {
    for (int i = 0; i < 9; ++i) {
      const SessionActor victim = lab_.open();
      const std::uint64_t rows = lab_.engine().counters().rows;
      caf::anon_send(victim, say_atom_v, token_turn(prompt(40 + i, 30 + 60 * (i % 3)), 200));
      while (lab_.engine().counters().rows < rows + static_cast<std::uint64_t>(20 * (i % 3))) std::this_thread::yield();
      if (i % 2 == 0) lab_.self()->send_exit(victim, caf::exit_reason::kill);
      if (i % 2 == 1) lab_.self()->send(victim, stop_atom_v);
      sessions_.push_back(victim);
    }
  }

  void finish() {
    int failed = 0;
    for (Pending& turn : pending_) turn.receive([](TurnEnd&) {}, [&](caf::error&) { ++failed; });
    EXPECT_EQ(failed, 2) << "the faulty one, and that whose processor throws";
    pending_.clear();
  }

  // Later turns of sessions that may have slept meanwhile, or were stopped: they go on from what they have said.
  void chat_on() {
    const std::size_t stopped = sessions_.size() - 8;
    for (const std::size_t i :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, stopped, stopped + 2, stopped + 4}) {
      auto past = lab_.ask<Transcript>(sessions_[i], transcript_atom_v);
      ASSERT_TRUE(past);
      const auto said = prompt(60 + static_cast<int>(i), 8);
      const auto end = lab_.say(sessions_[i], token_turn(said, 12));
      ASSERT_TRUE(end) << end.error().message;
      EXPECT_EQ(end->tokens, lab_.solo(token_turn(joined(past->tokens, said), 12)));
    }
  }

  std::atomic<int> calls_{0};
  std::shared_ptr<Engine> engine_;
  ActorLab lab_;
  std::vector<SessionActor> sessions_;
  std::vector<Pending> pending_;
};

// A batch can be gathered of nothing: all of its steps were revoked meanwhile.
bool is_launch(const RecordEvent& event) {
  const auto* batch = std::get_if<BatchGathered>(&event);
  return batch != nullptr && !batch->slices.empty();
}

// One life of the house, recorded once for all tests of this file.
class Replayed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto twin = other_engine("auto", 1);
    auto record = RecordWriter::create(path(), record_header(*twin, tiny_path(), house_options()));
    ASSERT_TRUE(record) << record.error().message;
    RecordedHouse(std::move(*record)).live();
  }
  static std::string path() {
    static const ScratchFolder folder;
    return folder.file("house.record");
  }
  static RecordReader record() {
    auto opened = RecordReader::open(path());
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  static ReplayReport replayed(Engine& engine) {
    RecordReader reader = record();
    const auto report = replay(reader, engine);
    if (!report) throw std::runtime_error(report.error().message);
    return *report;
  }
  static void expect_equal(const ReplayReport& report) {
    EXPECT_TRUE(report.all_equal()) << report.first_difference;
    EXPECT_EQ(report.equal_launches, report.launches);
    EXPECT_EQ(report.equal_answers, report.answers);
    EXPECT_GT(report.tokens, 700u);
    EXPECT_GE(report.outside, 1u) << "the tokens of the logits processor";
    EXPECT_GE(report.faults, 3u) << "whole, again whole, and alone";
    EXPECT_EQ(report.unfinished, 2u) << "the launches in which the device died";
    EXPECT_EQ(report.batchers, 3u);
    EXPECT_FALSE(report.torn);
  }
  // A replay of other events than were recorded.
  static Result<ReplayReport> replay_of(const std::vector<RecordEvent>& events, Engine& engine) {
    const std::string bytes = record_bytes(record().header(), events);
    auto reader = RecordReader::view(bytes, "changed");
    return replay(*reader, engine);
  }
};

TEST_F(Replayed, a_crowd_with_cancels_and_deaths_gives_its_batches_and_bits_a_hundred_times) {
  const int times = small_scale() ? 5 : 100;
  const auto engine = other_engine("auto", 1);
  int equal = 0;
  for (int i = 0; i < times; ++i) {
    const ReplayReport report = replayed(*engine);
    expect_equal(report);
    equal += report.all_equal() ? 1 : 0;
  }
  EXPECT_EQ(equal, times);
  EXPECT_EQ(engine->pages()->used(), 0);
  promise("N13", with_commas(equal) + " of " + with_commas(times) + " replays of a crowd: same batches, same bits");
}

TEST_F(Replayed, guesses_of_a_draft_model_are_read_and_not_computed) {
  const auto events = events_of(record());
  EXPECT_GT(std::ranges::count_if(events, [](auto& one) { return std::holds_alternative<StepGuessed>(one); }), 0);
}

TEST_F(Replayed, any_threads_and_instruction_set_give_the_recorded_bits) {
  expect_equal(replayed(*other_engine("auto", 2)));
  expect_equal(replayed(*other_engine("reference", 1)));
}

TEST_F(Replayed, a_token_that_was_another_is_found_and_named) {
  auto events = events_of(record());
  // In the last session's last turn, with tokens before and behind it.
  auto at = events.end();
  for (int left = 5; left > 0; left -= std::holds_alternative<LaunchEnded>(*at) ? 1 : 0) --at;
  auto& token = std::get<LaunchEnded>(*at).outcomes.at(0).sampled->token;
  const TokenId was = std::exchange(token, token == 100 ? 101 : 100);
  const auto engine = other_engine("auto", 1);
  const auto report = replay_of(events, *engine);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->all_equal());
  EXPECT_EQ(report->equal_answers, report->answers - 1) << "the replay goes on with the recorded token";
  EXPECT_EQ(report->equal_launches, report->launches);
  const auto launch = std::count_if(events.begin(), at + 1, is_launch);
  const std::string& how = report->first_difference;
  EXPECT_TRUE(how.starts_with("launch " + std::to_string(launch) + ": session ")) << how;
  EXPECT_NE(how.find("got token " + std::to_string(token)), std::string::npos) << how;
  EXPECT_NE(how.find("now token " + std::to_string(was)), std::string::npos) << how;
}

TEST_F(Replayed, a_batch_that_was_another_ends_the_replay_there) {
  auto events = events_of(record());
  nth<BatchGathered>(events, 9, is_launch).slices.back().rows += 1;
  const auto engine = other_engine("auto", 1);
  const auto report = replay_of(events, *engine);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->equal_launches, report->launches - 1);
  EXPECT_NE(report->first_difference.find(": slice "), std::string::npos) << report->first_difference;
}

TEST_F(Replayed, a_clock_that_was_read_otherwise_is_found) {
  auto events = events_of(record());
  auto waited = std::find_if(events.begin(), events.end(),
                             [](const RecordEvent& event) { return std::holds_alternative<ClockRead>(event); });
  ASSERT_NE(waited, events.end());
  std::get<ClockRead>(*waited).now += std::chrono::hours(1);
  const auto engine = other_engine("auto", 1);
  const auto report = replay_of(events, *engine);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_NE(report->first_difference.find("the record waited"), std::string::npos) << report->first_difference;
}

TEST_F(Replayed, another_model_is_refused_with_both_fingerprints) {
  const ScratchFolder folder;
  TinyModel other = tiny_model(DType::q4_0);
  other.seed = 2;
  const auto engine = Engine::open(write_tiny_model(other, folder.file("other.gguf")), house_options());
  ASSERT_TRUE(engine);
  RecordReader reader = record();
  const auto refused = replay(reader, **engine);
  ASSERT_FALSE(refused);
  for (const std::uint64_t fingerprint : {reader.header().fingerprint, (*engine)->fingerprint()}) {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(fingerprint));
    EXPECT_NE(refused.error().message.find(hex), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace troupe::test
