// Many conversations at once, as actors: many_sessions MODEL.gguf [SESSIONS] [TOKENS] [--check]
//
// Spawns a host, opens SESSIONS session actors, asks each its own question at the same moment, and prints the streams
// as they come, a line a piece, marked with the session's number. At the end: each whole answer, and how many sessions
// the launches computed together. With --check every question is then asked again of a session that is alone, and the
// answers are compared byte for byte.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "actors/spawn.h"

namespace {

using namespace troupe;

constexpr auto kLimit = std::chrono::minutes(10);

std::string question(std::size_t i) {
  static constexpr const char* kTopics[] = {"the sea",  "a lighthouse", "bread",  "the moon", "trains", "a small dog",
                                            "rivers",   "winter",       "clocks", "a garden", "music",  "the desert",
                                            "a market", "bicycles",     "storms", "old maps"};
  std::string text = std::string("Write two sentences about ") + kTopics[i % std::size(kTopics)] + ".";
  if (i >= std::size(kTopics)) text += " Begin with the number " + std::to_string(i) + ".";
  return text;
}

Turn turn_of(std::size_t i, int tokens) {
  Turn turn;
  turn.text = question(i);
  turn.limits.max_tokens = tokens;
  turn.sampling = SamplingParams{.temperature = 0.7f, .seed = i + 1};
  return turn;
}

// One reader for all: prints what comes and gives the credit back.
SinkActor::behavior_type printer(SinkActor::pointer self, std::vector<SessionActor>* sessions) {
  return {[=](const TextDelta& delta) {
    const auto session = caf::actor_cast<SessionActor>(self->current_sender());
    for (std::size_t i = 0; i < sessions->size(); ++i) {
      if ((*sessions)[i] == session) std::printf("%2zu| %s\n", i, delta.text.c_str());
    }
    self->send(session, credit_atom_v, std::int32_t{1});
  }};
}

// The answers of all questions, asked together (sink given) or one after another.
class Asker {
 public:
  Asker(caf::actor_system& system, HostActor host) : self_(system), host_(std::move(host)) {}

  SessionActor open() {
    SessionActor session;
    self_->request(host_, kLimit, open_atom_v, OpenSession{})
        .receive([&](SessionActor& opened) { session = std::move(opened); }, [&](caf::error& error) { give_up(error); });
    return session;
  }

  template <class... Sink>
  auto say(const SessionActor& session, std::size_t i, int tokens, const Sink&... sink) {
    return self_->request(session, kLimit, say_atom_v, turn_of(i, tokens), sink...);
  }

  template <class Response>
  std::string answer(Response&& response) {
    std::string text;
    response.receive([&](TurnEnd& end) { text = std::move(end.text); }, [&](caf::error& error) { give_up(error); });
    return text;
  }

  LaunchStats stats() {
    LaunchStats stats;
    self_->request(host_, kLimit, stats_atom_v).receive([&](LaunchStats& found) { stats = std::move(found); }, [&](caf::error& error) { give_up(error); });
    return stats;
  }

 private:
  [[noreturn]] static void give_up(const caf::error& error) {
    std::fprintf(stderr, "many_sessions: %s\n", caf::to_string(error).c_str());
    std::exit(1);
  }
  caf::scoped_actor self_;
  HostActor host_;
};

// Sessions a launch, over the launches in which all were still decoding or had been.
void print_widths(const LaunchStats& stats) {
  double launches = 0, rows = 0;
  for (std::size_t w = 1; w < stats.by_decode_width.size(); ++w) {
    launches += static_cast<double>(stats.by_decode_width[w]);
    rows += static_cast<double>(w * stats.by_decode_width[w]);
    if (stats.by_decode_width[w] > 0) std::printf("  %llu launches of %zu sessions\n", static_cast<unsigned long long>(stats.by_decode_width[w]), w);
  }
  std::printf("mean launch width %.2f\n", launches > 0 ? rows / launches : 0.0);
}

int run(caf::actor_system& system, const HostActor& host, std::size_t count, int tokens, bool check) {
  Asker asker(system, host);
  std::vector<SessionActor> sessions;
  for (std::size_t i = 0; i < count; ++i) sessions.push_back(asker.open());
  const SinkActor sink = system.spawn(printer, &sessions);
  std::vector<decltype(asker.say(sessions[0], 0, tokens, sink))> pending;
  for (std::size_t i = 0; i < count; ++i) pending.push_back(asker.say(sessions[i], i, tokens, sink));
  std::vector<std::string> answers;
  for (auto& response : pending) answers.push_back(asker.answer(response));
  for (std::size_t i = 0; i < count; ++i) std::printf("\n[%zu] %s\n%s\n", i, question(i).c_str(), answers[i].c_str());
  print_widths(asker.stats());
  for (const SessionActor& session : sessions) caf::anon_send(session, close_atom_v);
  caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
  std::size_t equal = 0;
  for (std::size_t i = 0; check && i < count; ++i) {
    const SessionActor alone = asker.open();
    equal += asker.answer(asker.say(alone, i, tokens)) == answers[i] ? 1 : 0;
    caf::anon_send(alone, close_atom_v);
  }
  if (check) std::printf("%zu of %zu answers equal to those of a session alone, byte for byte\n", equal, count);
  return check && equal != count ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc > 2 && std::strcmp(argv[argc - 1], "--check") == 0;
  if (argc < 2) {
    std::fprintf(stderr, "use: %s MODEL.gguf [SESSIONS] [TOKENS] [--check]\n", argv[0]);
    return 2;
  }
  const int numbers = argc - (check ? 1 : 0);
  const int count = numbers > 2 ? std::atoi(argv[2]) : 16;
  const int tokens = numbers > 3 ? std::atoi(argv[3]) : 48;
  if (count < 1 || tokens < 1) {
    std::fprintf(stderr, "many_sessions: SESSIONS and TOKENS must be numbers above 0\n");
    return 2;
  }
  auto engine = troupe::Engine::open(argv[1], {});
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  caf::actor_system_config config;
  troupe::configure(config);
  caf::actor_system system{config};
  const troupe::HostActor host = troupe::spawn_host(system, std::move(*engine));
  const int code = run(system, host, static_cast<std::size_t>(count), tokens, check);
  caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
  return code;
}
