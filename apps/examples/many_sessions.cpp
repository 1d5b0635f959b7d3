// Many conversations at once, as actors: many_sessions MODEL.gguf [SESSIONS] [TOKENS] [--check]
//
// Spawns a host, opens SESSIONS session actors, asks each its own question at the same moment, and prints the streams
// as they come, a line a piece, marked with the session's number. At the end: each whole answer, and how many sessions
// the launches computed together. With --check every question is then asked again of a session that is alone, and the
// answers are compared byte for byte.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  turn.limits.ignore_eos = true;  // all answer as long as the others, so that all decode together to the end
  turn.sampling = SamplingParams{.temperature = 0.7f, .seed = i + 1};
  return turn;
}

// What the batcher had done when the last session got its first token, and when the first one had all of its tokens:
// between the two, all were decoding.
struct Window {
  LaunchStats begin, end;
};

// One reader for all: prints what comes, gives the credit back, and looks at the batcher at the window's two ends.
SinkActor::behavior_type printer(SinkActor::pointer self, const std::vector<SessionActor>& sessions,
                                 const HostActor& host, int tokens, const std::shared_ptr<Window>& window) {
  auto counts = std::make_shared<std::vector<int>>(sessions.size());
  const auto look = [self, host](LaunchStats& place) {
    if (!place.by_decode_width.empty()) return;
    self->request(host, kLimit, stats_atom_v).then([&place](LaunchStats& stats) { place = std::move(stats); });
  };
  return {[=](const TextDelta& delta) {
    const auto session = caf::actor_cast<SessionActor>(self->current_sender());
    const auto i = static_cast<std::size_t>(std::ranges::find(sessions, session) - sessions.begin());
    std::printf("%2zu| %s\n", i, delta.text.c_str());
    (*counts)[i] += static_cast<int>(delta.tokens.size());
    self->send(session, credit_atom_v, std::int32_t{1});
    if (std::ranges::find(*counts, 0) == counts->end()) look(window->begin);
    if ((*counts)[i] >= tokens - 1) look(window->end);
  }};
}

// The answers of all questions, asked together (sink given) or one after another.
class Asker {
 public:
  Asker(caf::actor_system& system, HostActor host) : self_(system), host_(std::move(host)) {}

  SessionActor open() {
    SessionActor session;
    self_->request(host_, kLimit, open_atom_v, OpenSession{})
        .receive([&](SessionActor& opened) { session = std::move(opened); },
                 [&](caf::error& error) { give_up(error); });
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

 private:
  [[noreturn]] static void give_up(const caf::error& error) {
    std::fprintf(stderr, "many_sessions: %s\n", caf::to_string(error).c_str());
    std::exit(1);
  }
  caf::scoped_actor self_;
  HostActor host_;
};

void print_widths(const Window& window) {
  double launches = 0, sessions = 0;
  for (std::size_t w = 1; w < window.end.by_decode_width.size(); ++w) {
    const auto before = w < window.begin.by_decode_width.size() ? window.begin.by_decode_width[w] : 0;
    const auto here = window.end.by_decode_width[w] - before;
    launches += static_cast<double>(here);
    sessions += static_cast<double>(w * here);
    if (here > 0) std::printf("  %llu launches of %zu sessions\n", static_cast<unsigned long long>(here), w);
  }
  std::printf("mean launch width %.2f while all were decoding\n", launches > 0 ? sessions / launches : 0.0);
}

int run(caf::actor_system& system, const HostActor& host, std::size_t count, int tokens, bool check) {
  Asker asker(system, host);
  std::vector<SessionActor> sessions;
  for (std::size_t i = 0; i < count; ++i) sessions.push_back(asker.open());
  auto window = std::make_shared<Window>();
  const SinkActor sink = system.spawn(printer, sessions, host, tokens, window);
  std::vector<decltype(asker.say(sessions[0], 0, tokens, sink))> pending;
  for (std::size_t i = 0; i < count; ++i) pending.push_back(asker.say(sessions[i], i, tokens, sink));
  std::vector<std::string> answers;
  answers.reserve(count);
  for (auto& response : pending) answers.push_back(asker.answer(response));
  for (std::size_t i = 0; i < count; ++i) std::printf("\n[%zu] %s\n%s\n", i, question(i).c_str(), answers[i].c_str());
  print_widths(*window);
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

constexpr int kMostSessions = 4096, kMostTokens = 1 << 20;

struct Wanted {
  std::string model;
  int sessions = 16, tokens = 48;
  bool check = false;
};

// A whole number from 1 to `most`, or nothing.
std::optional<int> number(std::string_view text, int most) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 1 || value > most) return std::nullopt;
  return value;
}

// Nothing where the words are not those of the first line of this file.
std::optional<Wanted> read_arguments(std::vector<std::string> words) {
  Wanted wanted;
  wanted.check = !words.empty() && words.back() == "--check";
  if (wanted.check) words.pop_back();
  if (words.empty() || words.size() > 3) return std::nullopt;
  wanted.model = words[0];
  const auto sessions = words.size() > 1 ? number(words[1], kMostSessions) : wanted.sessions;
  const auto tokens = words.size() > 2 ? number(words[2], kMostTokens) : wanted.tokens;
  if (!sessions || !tokens) return std::nullopt;
  wanted.sessions = *sessions;
  wanted.tokens = *tokens;
  return wanted;
}

int serve(const Wanted& wanted) {
  auto engine = Engine::open(wanted.model, {});
  if (!engine) {
    std::fprintf(stderr, "many_sessions: %s\n", engine.error().message.c_str());
    return 1;
  }
  caf::actor_system_config config;
  configure(config);
  caf::actor_system system{config};
  const HostActor host = spawn_host(system, std::move(*engine));
  const int code = run(system, host, static_cast<std::size_t>(wanted.sessions), wanted.tokens, wanted.check);
  caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto wanted = read_arguments({argv + 1, argv + argc});
    if (wanted) return serve(*wanted);
    std::fprintf(stderr, "use: many_sessions MODEL.gguf [SESSIONS, to %d] [TOKENS, to %d] [--check]\n", kMostSessions,
                 kMostTokens);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_sessions: %s\n", error.what());
    return 1;
  }
}
