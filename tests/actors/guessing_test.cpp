// Sessions that guess their next tokens say what they would say without: whole conversations drawn from a seed, with
// every kind of sampling, end and window, are lived in a house that guesses and in one that does not.
#include <atomic>
#include <bit>
#include <iostream>
#include <mutex>

#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"
#include "tests/actors/draft_lab.h"
#include "tests/support/random.h"

namespace troupe::test {
namespace {

// A turn, and how its reader takes it: 0: nobody reads; else the credit that it begins with.
struct Saying {
  Turn turn;
  std::int32_t credit = 0;
};
struct Script {
  OpenSession opening;
  std::vector<Saying> sayings;
};

SamplingParams drawn_sampling(Random& random) {
  SamplingParams params{.temperature = 0.2f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = random.next()};
  switch (random.below(6)) {
    case 0:
    case 1:
      return SamplingParams::greedy();
    case 2:
      params.frequency_penalty = 0.05f;
      return params;
    case 3:
      params.mirostat = 2;
      params.mirostat_tau = 1.0f;
      return params;
    case 4:
      params.dry_multiplier = 0.1f, params.dry_allowed_length = 6;
      return params;
    default:
      return params;
  }
}

// The tiny model wanders: this makes it say the same again and again, but for a slip now and then.
LogitsProcessor refrain(std::uint64_t seed, std::int64_t length) {
  return [seed, length](std::span<float> logits, std::span<const TokenId> history) {
    const auto at = static_cast<std::uint64_t>(std::ssize(history));
    if (Random(seed + at).below(9) == 0) return;
    Random word(seed + at % static_cast<std::uint64_t>(length));
    logits[static_cast<std::size_t>(3 + word.below(500))] += 40.0f;
  };
}

Turn drawn_turn(Random& random) {
  Turn turn = token_turn(prompt(static_cast<int>(random.below(1000)), static_cast<int>(1 + random.below(12))), 0);
  // Something was said several times: there is something to guess from.
  const std::vector<TokenId> once = turn.tokens;
  for (std::int64_t times = random.below(4); times > 0; --times) turn.tokens = joined(turn.tokens, once);
  turn.limits.max_tokens = static_cast<std::int32_t>(1 + random.below(120));
  turn.limits.ignore_eos = random.below(2) == 0;
  turn.limits.min_tokens = static_cast<std::int32_t>(random.below(10));
  if (random.below(3) == 0) turn.limits.stop = {std::string(1, static_cast<char>('a' + random.below(26)))};
  if (random.below(3) == 0) turn.limits.end_tokens = {static_cast<TokenId>(3 + random.below(500))};
  turn.logprobs = static_cast<std::int32_t>(random.below(4)) - 1;
  turn.sampling = drawn_sampling(random);
  if (random.below(4) > 0) turn.logits_processor = refrain(random.next(), 3 + random.below(10));
  return turn;
}

Script drawn_script(std::uint64_t seed) {
  Random random(seed);
  Script script;
  if (random.below(3) == 0) script.opening.window = TokenWindow{40 + random.below(60), 4};
  for (std::int64_t turns = 1 + random.below(3); turns > 0; --turns) {
    script.sayings.push_back({drawn_turn(random), static_cast<std::int32_t>(random.below(4))});
    script.sayings.back().turn.credit = std::max(script.sayings.back().credit, 1);
  }
  return script;
}

// What can be seen of a conversation but its times, and how much was guessed.
struct Seen {
  std::vector<TurnEnd> ends;
  std::vector<std::string> streamed;
  std::vector<TokenId> history;
  std::int64_t drafts = 0, right = 0;
};

// Collects text and gives each credit back.
struct Stream {
  std::mutex mutex;
  std::string text;
  SinkActor open(caf::actor_system& system) {
    return system.spawn([this](SinkActor::pointer self) -> SinkActor::behavior_type {
      return {[this, self](TextDelta& delta) {
        const std::lock_guard lock(mutex);
        text += delta.text;
        if (auto session = caf::actor_cast<caf::actor>(self->current_sender()))
          self->send(caf::actor_cast<SessionActor>(session), credit_atom_v, std::int32_t{1});
      }};
    });
  }
};

// A scoped actor of its own, so that conversations can be lived on many threads.
void live(caf::actor_system& system, const HostControl& host, const Script& script, Seen& seen) {
  caf::scoped_actor self(system);
  SessionActor session;
  const auto fail = [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
  self->request(host, std::chrono::seconds(120), open_atom_v, script.opening)
      .receive([&](SessionActor& opened) { session = opened; }, fail);
  for (const Saying& saying : script.sayings) {
    Stream stream;
    const SinkActor sink = saying.credit > 0 ? stream.open(system) : SinkActor();
    const auto take = [&](TurnEnd& end) {
      seen.drafts += end.draft_tokens;
      seen.right += end.right_drafts;
      seen.ends.push_back(std::move(end));
    };
    if (sink) {
      self->request(session, std::chrono::seconds(120), say_atom_v, saying.turn, sink).receive(take, fail);
      self->send_exit(sink, caf::exit_reason::user_shutdown);
      self->wait_for(sink);
    } else {
      self->request(session, std::chrono::seconds(120), say_atom_v, saying.turn).receive(take, fail);
    }
    seen.streamed.push_back(stream.text);
  }
  self->request(session, std::chrono::seconds(120), transcript_atom_v)
      .receive([&](Transcript& transcript) { seen.history = std::move(transcript.tokens); }, fail);
}

// Of the sequences, computed now or before: of an answer that was cut, more may be there for the next turn.
std::int64_t rows(const Seen& seen) {
  std::int64_t rows = 0;
  for (const TurnEnd& end : seen.ends) rows += end.computed_tokens + end.cached_tokens;
  return rows;
}

void expect_same(const Seen& guessed, const Seen& plain) {
  EXPECT_EQ(guessed.history, plain.history);
  EXPECT_EQ(guessed.streamed, plain.streamed);
  ASSERT_EQ(guessed.ends.size(), plain.ends.size());
  for (std::size_t i = 0; i < plain.ends.size(); ++i) {
    const TurnEnd &a = guessed.ends[i], &b = plain.ends[i];
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.reason, b.reason);
    EXPECT_EQ(a.dropped_tokens, b.dropped_tokens);
    ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
    for (std::size_t k = 0; k < b.logprobs.size(); ++k) {
      EXPECT_EQ(a.logprobs[k].token, b.logprobs[k].token);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(a.logprobs[k].logprob),
                std::bit_cast<std::uint32_t>(b.logprobs[k].logprob));
      EXPECT_EQ(a.logprobs[k].top.size(), b.logprobs[k].top.size());
    }
  }
}

SupervisorOptions guessing(std::int32_t drafts, RunBatch run = {}) {
  SupervisorOptions options;
  options.drafts = drafts;
  options.prefix_memory = 0;  // what is found in the index depends on who was first
  options.run = std::move(run);
  return options;
}

std::vector<Seen> one_after_another(ActorLab& lab, const std::vector<Script>& scripts) {
  std::vector<Seen> all(scripts.size());
  for (std::size_t i = 0; i < scripts.size(); ++i) live(lab.system(), lab.host(), scripts[i], all[i]);
  return all;
}

std::vector<Seen> all_at_once(ActorLab& lab, const std::vector<Script>& scripts) {
  std::vector<Seen> all(scripts.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < scripts.size(); ++i)
    threads.emplace_back([&, i] { live(lab.system(), lab.host(), scripts[i], all[i]); });
  threads.clear();
  return all;
}

class Guessing : public testing::Test {
 protected:
  Guessing() {
    for (int i = 0; i < (small_scale() ? 24 : 120); ++i)
      scripts_.push_back(drawn_script(static_cast<std::uint64_t>(i)));
    ActorLab plain(guessing(0));
    truth_ = one_after_another(plain, scripts_);
  }

  // How much was guessed, and how much of it was right.
  std::pair<std::int64_t, std::int64_t> compare(const std::vector<Seen>& guessed) {
    std::int64_t drafts = 0, right = 0;
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      SCOPED_TRACE("conversation " + std::to_string(i));
      expect_same(guessed[i], truth_[i]);
      drafts += guessed[i].drafts;
      EXPECT_LE(guessed[i].right, guessed[i].drafts);
      right += guessed[i].right;
    }
    std::cout << right << " of " << drafts << " guesses were right\n";
    return {drafts, right};
  }

  std::vector<Script> scripts_;
  std::vector<Seen> truth_;
};

TEST_F(Guessing, changes_nothing_that_a_session_says_alone) {
  ActorLab lab(guessing(8));
  const std::vector<Seen> guessed = one_after_another(lab, scripts_);
  const auto [drafts, right] = compare(guessed);
  EXPECT_GT(right, std::ssize(scripts_));
  for (std::size_t i = 0; i < scripts_.size(); ++i) {
    EXPECT_EQ(rows(guessed[i]) - guessed[i].drafts + guessed[i].right, rows(truth_[i]))
        << "every token is computed once, and wrong guesses beside them";
  }
  EXPECT_LT(right, drafts) << "wrong guesses were tried too";
}

TEST_F(Guessing, changes_nothing_in_a_crowd_where_it_pays_for_some_and_not_for_others) {
  std::shared_ptr<Engine> engine;
  ActorLab lab(guessing(HostOptions::kMostDrafts, slowly(engine)));
  engine = lab.shared_engine();
  const auto [drafts, right] = compare(all_at_once(lab, scripts_));
  EXPECT_GT(right, 0);
  EXPECT_LT(right, drafts);
}

TEST_F(Guessing, changes_nothing_when_batchers_die_with_guesses_in_work) {
  std::shared_ptr<Engine> engine;
  int with_guesses = 0, deaths = 0;
  const auto run = [&](std::span<Slice> batch) {
    engine->run(batch);
    const bool guessed = std::ranges::any_of(batch, [](const Slice& slice) { return slice.right > 0; });
    if (guessed && ++with_guesses % 25 == 0 && deaths < 3) {
      ++deaths;
      throw DeviceFault("the answer is lost");
    }
    if (guessed && with_guesses % 10 == 0) throw StepFault("try again");
  };
  ActorLab lab(guessing(8, run));
  engine = lab.shared_engine();
  compare(one_after_another(lab, scripts_));
  EXPECT_EQ(deaths, 3);
}

TEST_F(Guessing, changes_nothing_with_a_draft_model_whatever_that_knows) {
  for (int layers : {2, 1, 0}) {
    SCOPED_TRACE(std::to_string(layers) + " layers");
    std::shared_ptr<Engine> engine;
    SupervisorOptions options = guessing(8, slowly(engine));
    options.draft = draft_of(layers);
    ActorLab lab(options);
    engine = lab.shared_engine();
    const std::vector<Seen> guessed = one_after_another(lab, scripts_);
    const auto [drafts, right] = compare(guessed);
    EXPECT_GT(right, std::ssize(scripts_));
    EXPECT_LT(right, drafts);
    for (std::size_t i = 0; i < scripts_.size(); ++i)
      EXPECT_EQ(rows(guessed[i]) - guessed[i].drafts + guessed[i].right, rows(truth_[i]));
  }
}

TEST_F(Guessing, changes_nothing_in_a_crowd_with_a_draft_model_that_fails_now_and_then) {
  std::shared_ptr<Engine> engine;
  SupervisorOptions options = guessing(8, slowly(engine));
  options.draft = draft_of(1);
  std::atomic<int> calls = 0;
  options.draft.run = [run = options.draft.run, &calls](std::span<Slice> batch) {
    if (++calls % 20 == 0) throw StepFault("not now");
    run(batch);
    if (calls % 20 == 10) throw StepFault("what it computed is lost");
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  const auto [drafts, right] = compare(all_at_once(lab, scripts_));
  EXPECT_GT(right, 0);
  EXPECT_GT(calls, 20);
  promise("C24",
          std::to_string(scripts_.size()) +
              " conversations, with and without a draft model, alone, in a crowd and with batchers that die: the "
              "same bits");
}

TEST(GuessingSession, with_the_model_itself_as_its_draft_is_always_right) {
  std::shared_ptr<Engine> engine;
  SupervisorOptions options = guessing(8, much_more_slowly(engine));
  options.draft = draft_of(2);
  ActorLab lab(options);
  engine = lab.shared_engine();
  // At any temperature: the draft draws with the session's own random numbers.
  Turn turn = token_turn(prompt(1, 12), 120, 5);
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->tokens, lab.solo(turn));
  EXPECT_GT(end->right_drafts, 60);
  EXPECT_GE(end->right_drafts, end->draft_tokens - 4) << "but for what its own history guesses";
  EXPECT_GT(lab.ask<LaunchStats>(lab.host(), stats_atom_v)->drafting, Seconds(0));
}

TEST(GuessingSession, goes_on_without_a_draft_model_whose_device_fails) {
  SupervisorOptions options = guessing(8);
  options.draft = draft_of(1);
  int calls = 0;
  options.draft.run = [&calls](std::span<Slice>) {
    ++calls;
    throw DeviceFault("the draft's device is gone");
  };
  ActorLab lab(options);
  const Turn turn = token_turn(prompt(1, 12), 60, 5);
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->tokens, lab.solo(turn));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(lab.describe().batcher_restarts, 0);
}

TEST(GuessingSession, has_its_draft_model_again_when_it_was_parked_as_the_batcher_died) {
  std::shared_ptr<Engine> engine;
  std::atomic<bool> dies = false;
  SupervisorOptions options = guessing(8, [&](std::span<Slice> batch) {
    much_more_slowly(engine)(batch);
    if (dies.exchange(false)) throw DeviceFault("the answer is lost");
  });
  options.draft = draft_of(2);
  ActorLab lab(options);
  engine = lab.shared_engine();
  Turn turn = token_turn(prompt(1, 12), 200, 5);
  turn.credit = 1;
  const SinkActor sink =
      lab.system().spawn([](SinkActor::pointer) -> SinkActor::behavior_type { return {[](const TextDelta&) {}}; });
  const SessionActor parked = lab.open();
  auto pending = lab.self()->request(parked, std::chrono::seconds(120), say_atom_v, turn, sink);
  while (lab.ask<SessionTrace>(parked, trace_atom_v)->phase != SessionPhase::parked) std::this_thread::yield();
  dies = true;
  ASSERT_TRUE(lab.say(lab.open(), token_turn(prompt(2, 12), 4)) && lab.describe().batcher_restarts == 1);
  lab.self()->send(parked, credit_atom_v, std::int32_t{1000});
  TurnEnd end;
  pending.receive([&](TurnEnd& ended) { end = std::move(ended); }, [](caf::error&) {});
  EXPECT_EQ(end.tokens, lab.solo(turn));
  EXPECT_GT(end.right_drafts, 100);
  lab.self()->send_exit(sink, caf::exit_reason::user_shutdown);
}

TEST(GuessingSession, asks_no_draft_model_where_a_launch_has_no_row_for_its_guesses) {
  SupervisorOptions options = guessing(8);
  options.draft = draft_of(2);
  EngineOptions engine_options = lab_options();
  engine_options.max_rows = 1;
  ActorLab lab(options, engine_options);
  ASSERT_TRUE(lab.say(lab.open(), token_turn(prompt(1, 12), 60, 5)));
  EXPECT_EQ(lab.ask<LaunchStats>(lab.host(), stats_atom_v)->drafting, Seconds(0));
}

TEST_F(Guessing, shares_its_page_pool_with_sessions_that_wait_and_leaves_every_page) {
  ActorLab lab(guessing(8), lab_options(70));
  compare(all_at_once(lab, scripts_));
  EXPECT_EQ(lab.free_pages_at_rest(), 70);
}

TEST(GuessingSession, reports_its_guesses_and_needs_fewer_launches) {
  ActorLab lab(guessing(8));
  Turn turn = token_turn(prompt(1, 12), 200);
  turn.sampling = SamplingParams::greedy();
  const auto end = lab.say(lab.open(), turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->tokens, lab.solo(turn));
  const auto stats = lab.ask<LaunchStats>(lab.host(), stats_atom_v);
  ASSERT_TRUE(stats);
  EXPECT_EQ(static_cast<std::int64_t>(stats->drafts), end->draft_tokens);
  EXPECT_EQ(static_cast<std::int64_t>(stats->right_drafts), end->right_drafts);
  EXPECT_EQ(static_cast<std::int64_t>(stats->launches), 200 - end->right_drafts);
  EXPECT_EQ(end->computed_tokens, 12 + 199 + end->draft_tokens - end->right_drafts);
}

}  // namespace
}  // namespace troupe::test
