// What the tests of actors share: a tiny model's engine, a host in an actor system of its own, and blocking requests.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/errors.h"
#include "actors/spawn.h"
#include "actors/supervisor.h"
#include "kernels/fault.h"
#include "tests/support/promise.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_kv_type.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tokens.h"

namespace troupe::test {

inline const std::string& tiny_path() {
  static const ScratchFolder folder;
  static const std::string path = write_tiny_model(tiny_model(DType::q4_0), folder.file("tiny.gguf"));
  return path;
}

// The same with a context of 8,192 tokens.
inline const std::string& long_path() {
  static const ScratchFolder folder;
  static const std::string path = [] {
    TinyModel model = tiny_model(DType::q4_0);
    model.context = 8192;
    return write_tiny_model(model, folder.file("long.gguf"));
  }();
  return path;
}

inline EngineOptions lab_options() {
  EngineOptions options;
  options.threads = 1;
  options.kv_type = kv_type_under_test();
  options.kv_memory = std::uint64_t{8} << 20;
  options.poison_pages = true;
  return options;
}

// With so many pages.
inline EngineOptions lab_options(std::int64_t pages) {
  EngineOptions options = lab_options();
  const auto measured = Engine::open(tiny_path(), options);
  options.kv_memory = static_cast<std::uint64_t>(pages) * (*measured)->pages()->layout().page_bytes();
  return options;
}

inline std::vector<TokenId> prompt(int which, int tokens) {
  std::vector<TokenId> ids;
  std::uint64_t state = 77777u * static_cast<std::uint64_t>(which + 1);
  for (int i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    ids.push_back(static_cast<TokenId>(3 + (state >> 33) % 500));
  }
  return ids;
}

inline Turn token_turn(std::vector<TokenId> tokens, int max_tokens, std::uint64_t seed = 1) {
  Turn turn;
  turn.kind = Turn::Kind::tokens;
  turn.tokens = std::move(tokens);
  turn.limits.max_tokens = max_tokens;
  turn.limits.ignore_eos = true;
  turn.sampling = SamplingParams{.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = seed};
  return turn;
}

// The tokens that a plain loop over an engine of its own gives for the same turn: no actor, no neighbour.
inline std::vector<TokenId> solo(Engine& engine, const Turn& turn) {
  KvCache cache(engine.pages());
  std::vector<TokenId> next = turn.tokens, answer;
  if (!cache.reserve(static_cast<std::int64_t>(next.size()) + turn.limits.max_tokens))
    throw std::runtime_error("no pages");
  while (static_cast<int>(answer.size()) < turn.limits.max_tokens) {
    const KvLease lease = cache.lend();
    const std::size_t rows = std::min(next.size(), static_cast<std::size_t>(engine.max_rows()));
    Slice slice;
    slice.cache = &lease;
    slice.position = cache.length();
    slice.tokens = std::span(next).first(rows);
    slice.wants_token = rows == next.size();
    slice.no_end_for = 1;
    slice.sampling = &*turn.sampling;
    engine.run({&slice, 1});
    cache.commit(cache.length() + static_cast<std::int64_t>(rows));
    next.erase(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(rows));
    if (!next.empty()) continue;
    answer.push_back(slice.sampled.token);
    next = {slice.sampled.token};
  }
  return answer;
}

// Greedy answers of plain ASCII: half a character would come back as another text, and be computed anew.
inline SamplingParams plain_ascii(const Vocabulary& vocabulary) {
  SamplingParams params = SamplingParams::greedy();
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const bool ascii = std::ranges::all_of(vocabulary.bytes(id), [](char c) { return c >= 32 && c < 127; });
    if (!ascii || vocabulary.is_control(id)) params.logit_bias.emplace_back(id, -100.0f);
  }
  return params;
}

class ActorLab {
 public:
  explicit ActorLab(SupervisorOptions options = {}, EngineOptions engine_options = lab_options(),
                    const std::string& model = tiny_path(), const std::optional<SleepOptions>& sleep = std::nullopt)
      : config_(std::make_unique<Config>()), system_(*config_), self_(system_) {
    engine_ = open_engine(model, engine_options);
    engine_options.kv_memory = std::max<std::uint64_t>(engine_options.kv_memory, std::uint64_t{8} << 20);
    solo_engine_ = open_engine(model, engine_options);
    options.detached = true;
    if (sleep) options.sleep_room = *SleepRoom::open(*sleep, *engine_->pages());
    host_ = spawn_supervisor(system_, engine_, std::move(options));
  }
  ~ActorLab() { stop(); }

  void stop() {
    if (!host_) return;
    self_->send_exit(host_, caf::exit_reason::user_shutdown);
    self_->wait_for(host_);
    host_ = nullptr;
  }

  Engine& engine() { return *engine_; }
  // What the turn's answer is with nobody else: on an engine of its own, since the house's has one caller, the batcher.
  std::vector<TokenId> solo(const Turn& turn) { return test::solo(*solo_engine_, turn); }
  std::shared_ptr<Engine> shared_engine() { return engine_; }
  caf::scoped_actor& self() { return self_; }
  caf::actor_system& system() { return system_; }
  HostControl& host() { return host_; }

  template <class Answer, class Receiver, class... Message>
  Result<Answer> ask(const Receiver& receiver, const Message&... message) {
    Result<Answer> answer = Error{ErrorCode::engine_failed, "no answer"};
    self_->request(receiver, std::chrono::seconds(120), message...)
        .receive([&](Answer& value) { answer = std::move(value); },
                 [&](caf::error& error) { answer = from_caf(error); });
    return answer;
  }

  SessionActor open(OpenSession opening = {}) {
    auto session = ask<SessionActor>(host_, open_atom_v, opening);
    if (!session) throw std::runtime_error(session.error().message);
    return *session;
  }
  Result<TurnEnd> say(const SessionActor& session, const Turn& turn) { return ask<TurnEnd>(session, say_atom_v, turn); }
  HostInfo describe() { return *ask<HostInfo>(host_, describe_atom_v); }

  // Waits until no session is left (closing is asynchronous) and gives the pages that nobody holds, or the index alone.
  std::int64_t free_pages_at_rest() {
    const auto wait_until = [](auto&& reached) {
      for (int i = 0; i < 500 && !reached(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    wait_until([&] { return describe().sessions == 0; });
    wait_until([&] { return engine_->pages()->used() == describe().prefixes.pages; });
    return engine_->pages()->free() + describe().prefixes.pages;
  }

 private:
  struct Config : caf::actor_system_config {
    Config() { configure(*this); }
  };
  static std::unique_ptr<Engine> open_engine(const std::string& model, const EngineOptions& options) {
    auto opened = Engine::open(model, options);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Engine> solo_engine_;
  std::unique_ptr<Config> config_;
  caf::actor_system system_;
  caf::scoped_actor self_;
  HostControl host_;
};

}  // namespace troupe::test
