// Rules of sampling that remember, in a session: the same tokens as a plain loop, whatever happens to its steps.
#include "runtime/sampling/memory.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

Turn remembering_turn(int which) {
  Turn turn = token_turn(prompt(which, 30), 60, static_cast<std::uint64_t>(which));
  turn.sampling->repetition_penalty = 1.2f;
  turn.sampling->dry_multiplier = 1.5f;
  turn.sampling->dry_allowed_length = 1;
  turn.sampling->mirostat = which % 2 == 0 ? 2 : 0;
  turn.sampling->mirostat_tau = 3.0f;
  turn.sampling->xtc_probability = 0.5f;
  turn.sampling->xtc_threshold = 0.01f;
  return turn;
}

// One row at a time on an engine of its own, its memory beside it.
std::vector<TokenId> solo_with_memory(Engine& engine, const Turn& turn) {
  const Vocabulary& vocabulary = *engine.text().vocabulary;
  KvCache cache(engine.pages());
  EXPECT_TRUE(cache.reserve(std::ssize(turn.tokens) + turn.limits.max_tokens));
  auto memory = first_memory(*turn.sampling, turn.tokens, vocabulary);
  std::vector<TokenId> next = turn.tokens, answer;
  while (std::ssize(answer) < turn.limits.max_tokens) {
    const KvLease lease = cache.lend();
    Slice slice{.cache = &lease,
                .position = cache.length(),
                .tokens = next,
                .wants_token = true,
                .sampling = &*turn.sampling,
                .state = memory.get(),
                .no_end_for = 1};
    engine.run({&slice, 1});
    cache.commit(cache.length() + std::ssize(next));
    answer.push_back(slice.sampled.token);
    next = {slice.sampled.token};
    if (memory) memory = accepted(std::move(memory), *turn.sampling, slice.sampled, vocabulary);
  }
  return answer;
}

TEST(SamplingMemory, gives_the_same_tokens_when_batchers_die_with_a_token_already_drawn) {
  std::shared_ptr<Engine> engine;
  int calls = 0;
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    engine->run(batch);
    if (++calls == 9 || calls == 40) throw DeviceFault("the answer is lost");
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  EngineOptions alone = lab_options();
  auto other = Engine::open(tiny_path(), alone);
  ASSERT_TRUE(other);
  using Pending = decltype(lab.self()->request(lab.open(), std::chrono::seconds(60), say_atom_v, Turn()));
  std::vector<SessionActor> sessions;
  std::vector<Pending> pending;
  for (int i = 0; i < 4; ++i) {
    sessions.push_back(lab.open());
    pending.push_back(lab.self()->request(sessions.back(), std::chrono::seconds(60), say_atom_v, remembering_turn(i)));
  }
  for (int i = 0; i < 4; ++i) {
    const std::vector<TokenId> expected = solo_with_memory(**other, remembering_turn(i));
    pending[static_cast<std::size_t>(i)].receive([&](TurnEnd& end) { EXPECT_EQ(end.tokens, expected) << i; },
                                                 [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
    EXPECT_NE(expected, solo_with_memory(**other, token_turn(prompt(i, 30), 60, static_cast<std::uint64_t>(i))));
  }
  EXPECT_EQ(lab.describe().batcher_restarts, 2);
  lab.stop();
  engine.reset();
}

}  // namespace
}  // namespace troupe::test
