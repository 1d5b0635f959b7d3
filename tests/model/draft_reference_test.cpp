// A draft model that is the first layers of the default model: no token depends on it. How often it is right is
// printed.
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

#include "tests/actors/actor_lab.h"
#include "tests/support/cut_model.h"
#include "tests/support/scratch_folder.h"

namespace troupe::test {
namespace {

Turn spoken(int which) {
  Turn turn;
  turn.kind = Turn::Kind::text;
  turn.text = which % 2 == 0 ? "Once upon a time there was a cat named " + std::to_string(which) + ". She"
                             : "def add_" + std::to_string(which) + "(a, b):\n    return a + b\n\ndef";
  turn.limits = {.max_tokens = small_scale() ? 12 : 96, .ignore_eos = true};
  turn.sampling = which < 2 ? SamplingParams::greedy()
                            : SamplingParams{.temperature = 0.7f, .seed = static_cast<std::uint64_t>(which)};
  turn.logprobs = 1;
  return turn;
}

struct Said {
  std::vector<TurnEnd> ends;
  LaunchStats stats;
};

EngineOptions options() {
  EngineOptions options;
  options.kv_memory = std::uint64_t{128} << 20;
  return options;
}

// All turns at once, each in a session of its own. Launches take long, as those of a large model do: so guesses are
// more likely to pay, though how many are taken is the machine's to decide.
Said said_by(const std::string& model, const std::string& draft, int sessions) {
  std::shared_ptr<Engine> engine;
  SupervisorOptions house;
  house.run = [&engine](std::span<Slice> batch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(small_scale() ? 200 : 40));
    engine->run(batch);
  };
  house.drafts = 8;
  if (!draft.empty()) house.draft = DraftEngine::of(std::move(*Engine::open(draft, options())));
  ActorLab lab(std::move(house), options(), model);
  engine = lab.shared_engine();
  Said said;
  said.ends.resize(static_cast<std::size_t>(sessions));
  std::vector<std::jthread> threads;
  for (int i = 0; i < sessions; ++i) {
    threads.emplace_back([&, i] {
      caf::scoped_actor self(lab.system());
      SessionActor session;
      const auto fail = [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
      self->request(lab.host(), caf::infinite, open_atom_v, OpenSession{})
          .receive([&](SessionActor& opened) { session = opened; }, fail);
      self->request(session, caf::infinite, say_atom_v, spoken(i))
          .receive([&](TurnEnd& end) { said.ends[static_cast<std::size_t>(i)] = std::move(end); }, fail);
    });
  }
  threads.clear();
  said.stats = *lab.ask<LaunchStats>(lab.host(), stats_atom_v);
  return said;
}

std::vector<std::pair<TokenId, float>> chosen(const TurnEnd& end) {
  std::vector<std::pair<TokenId, float>> all;
  for (const Sampled& sampled : end.logprobs) all.emplace_back(sampled.token, sampled.logprob);
  return all;
}

TEST(DraftModelFile, of_the_models_first_layers_changes_no_token) {
  const char* model = std::getenv("TROUPE_MODEL");
  ASSERT_NE(model, nullptr);
  const ScratchFolder folder;
  const int sessions = small_scale() ? 2 : 6;
  const Said plain = said_by(model, "", sessions);
  const std::vector<int> cuts = small_scale() ? std::vector{20} : std::vector{30, 20, 4};
  for (const int layers : cuts) {
    const Said drafted = said_by(model, write_cut_model(model, layers, folder.file("draft.gguf")), sessions);
    for (std::size_t i = 0; i < plain.ends.size(); ++i) {
      EXPECT_EQ(drafted.ends[i].text, plain.ends[i].text) << layers << " layers, session " << i;
      EXPECT_EQ(chosen(drafted.ends[i]), chosen(plain.ends[i])) << layers << " layers, session " << i;
    }
    EXPECT_GT(drafted.stats.drafting, Seconds(0));
    std::printf("  a draft of %2d of 30 layers: %llu of %llu guesses right\n", layers,
                static_cast<unsigned long long>(drafted.stats.right_drafts),
                static_cast<unsigned long long>(drafted.stats.drafts));
  }
}

}  // namespace
}  // namespace troupe::test
