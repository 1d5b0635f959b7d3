#include "actors/troupe.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <new>
#include <system_error>
#include <utility>

#include "actors/errors.h"
#include "actors/reader.h"
#include "actors/spawn.h"
#include "actors/supervisor.h"
#include "runtime/record/record_header.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

// Every short request to the house has this limit; turns have their own.
constexpr auto kAnswerLimit = std::chrono::seconds(120);

// Set on the threads of every facade's actor system: a blocking call from one of them could wait for itself.
thread_local bool inside_actor_thread = false;

struct MarkThreads final : caf::thread_hook {
  void init(caf::actor_system&) override {}
  void thread_started() override { inside_actor_thread = true; }
  void thread_terminates() override {}
};

struct Config : caf::actor_system_config {
  Config() {
    configure(*this);
    add_thread_hook<MarkThreads>();
  }
};

Error called_inside() {
  return {ErrorCode::bad_input,
          "a blocking call from inside an actor of the host: send messages instead (actors/spawn.h)"};
}

// `draft` may be null.
SupervisorOptions supervision(const HostOptions& host, KeyWeights weights, std::shared_ptr<SleepRoom> sleep_room,
                              std::shared_ptr<RecordWriter> record, std::shared_ptr<Engine> draft) {
  SupervisorOptions options;
  options.record = std::move(record);
  options.sleep_room = std::move(sleep_room);
  options.fuse = host.fuse;
  options.drafts = HostOptions::guesses(host.drafts, draft != nullptr);
  if (draft) options.draft = DraftEngine::of(std::move(draft));
  options.prefix_memory = host.prefix_memory;
  options.weights = std::move(weights);
  return options;
}

Error gone() {
  return {ErrorCode::shutting_down, "the host is gone"};
}

Result<void> can_branch(const Turn& turn, std::int32_t n) {
  if (n < 1 || n > Session::kMostBranches) {
    return Error{ErrorCode::bad_input, "best_of " + std::to_string(n) + " answers; 1 to " +
                                           std::to_string(Session::kMostBranches) + " are possible"};
  }
  if (turn.heal) return Error{ErrorCode::bad_input, "best_of cannot heal: its branches begin behind the whole prompt"};
  return {};
}

// The turn without its answer: one token, which the branches do not see.
Turn prompt_only(Turn turn) {
  turn.limits = {.max_tokens = 1};
  turn.sampling = SamplingParams::greedy();
  turn.logits_processor = nullptr;
  turn.logprobs = -1;
  return turn;
}

// The turn without its prompt.
Turn answer_only(Turn turn) {
  turn.kind = Turn::Kind::tokens;
  turn.text.clear();
  turn.tokens.clear();
  turn.logprobs = std::max(turn.logprobs, 0);
  return turn;
}

double mean_logprob(const TurnEnd& end) {
  double sum = 0.0;
  for (const Sampled& sampled : end.logprobs) sum += static_cast<double>(sampled.logprob);
  return sum / std::max(static_cast<double>(end.logprobs.size()), 1.0);
}

}  // namespace

struct Host::State {
  State(std::shared_ptr<Engine> engine, SupervisorOptions options, std::chrono::milliseconds limit)
      : drain_limit(limit), system(config), actor(spawn_supervisor(system, std::move(engine), std::move(options))) {}
  ~State();

  std::chrono::milliseconds drain_limit;
  Config config;
  caf::actor_system system;
  HostControl actor;

  // One request from a thread that is no actor.
  template <class Answer, class... Message>
  Result<Answer> ask(const Message&... message) {
    return ask_within<Answer>(kAnswerLimit, message...);
  }
  template <class Answer, class... Message>
  Result<Answer> ask_within(caf::timespan limit, const Message&... message) {
    if (inside_actor_thread) return called_inside();
    caf::scoped_actor self{system};
    Result<Answer> answer = gone();
    self->request(actor, limit, message...)
        .receive([&](Answer& value) { answer = std::move(value); },
                 [&](caf::error& error) { answer = from_caf(error); });
    return answer;
  }
};

// Turns may end in peace for a while; then everything goes. The actor system's own destructor waits for all actors.
Host::State::~State() {
  caf::scoped_actor self{system};
  self->request(actor, drain_limit + std::chrono::seconds(1), drain_atom_v, caf::timespan(drain_limit))
      .receive([](bool) {}, [](caf::error&) {});
  self->send_exit(actor, caf::exit_reason::user_shutdown);
  self->wait_for(actor);
  actor = nullptr;
}

struct Session::State {
  State(std::weak_ptr<Host::State> of, SessionActor handle) : host(std::move(of)), actor(std::move(handle)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::weak_ptr<Host::State> host;
  SessionActor actor;

  ~State() {
    if (auto alive = host.lock()) caf::anon_send(actor, close_atom_v);
  }
};

Session::Session(std::shared_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<TurnEnd> Session::say(std::string_view text, const TurnOptions& options, const OnDelta& on_delta) {
  Turn turn;
  turn.text = std::string(text);
  turn.limits = options.limits;
  turn.sampling = options.sampling;
  turn.logits_processor = options.logits_processor;
  turn.logprobs = options.logprobs;
  turn.time_limit = options.time_limit;
  turn.background = options.background;
  return take(std::move(turn), on_delta);
}

// A turn under way, and until when its end is waited for.
struct Session::Asked {
  std::shared_ptr<Mailslot> slot = std::make_shared<Mailslot>();
  Clock::time_point deadline;

  // The next delta, or nothing: the turn has ended.
  Result<std::optional<TextDelta>> next() {
    std::optional<TextDelta> delta;
    if (!slot->next(deadline, delta)) return Error{ErrorCode::timed_out, "the session did not answer in time"};
    return delta;
  }
};

Result<Session::Asked> Session::ask(Turn turn, bool wants_text) const {
  if (inside_actor_thread) return called_inside();
  auto host = state_->host.lock();
  if (!host) return gone();
  Asked asked;
  // A little more than the turn's own limit, after which the session itself answers.
  asked.deadline = Clock::now() + turn.time_limit + std::chrono::seconds(60);
  spawn_reader(host->system, state_->actor, std::move(turn), wants_text, asked.slot);
  return asked;  // a host may go while a turn runs: the turn is then cancelled
}

Result<TurnEnd> Session::take(Turn turn, const OnDelta& on_delta) {
  const std::shared_ptr<State> state = state_;  // the object may be moved from while this thread waits
  auto asked = ask(std::move(turn), static_cast<bool>(on_delta));
  if (!asked) return asked.error();
  for (;;) {
    auto delta = asked->next();
    if (!delta) return delta.error();
    if (!*delta) return asked->slot->take_end();
    const bool go_on = on_delta(**delta);
    auto alive = state->host.lock();
    if (!alive) continue;
    if (!go_on) caf::anon_send(state->actor, stop_atom_v);
    caf::anon_send(state->actor, credit_atom_v, std::int32_t{1});
  }
}

void Session::stop() {
  if (auto host = state_->host.lock()) caf::anon_send(state_->actor, stop_atom_v);
}

template <class Answer, class Atom>
Result<Answer> Session::ask_actor(Atom question) const {
  if (inside_actor_thread) return called_inside();
  auto host = state_->host.lock();
  if (!host) return gone();
  caf::scoped_actor self{host->system};
  Result<Answer> answer = gone();
  self->request(state_->actor, kAnswerLimit, question)
      .receive([&](Answer& value) { answer = std::move(value); }, [&](caf::error& error) { answer = from_caf(error); });
  return answer;
}

Result<Transcript> Session::transcript() {
  return ask_actor<Transcript>(transcript_atom_v);
}

Result<SessionTrace> Session::trace() const {
  return ask_actor<SessionTrace>(trace_atom_v);
}

Result<Session> Session::fork(std::int64_t tokens) const {
  auto host = state_->host.lock();
  if (!host) return gone();
  auto actor = host->ask<SessionActor>(fork_atom_v, state_->actor, tokens);
  if (!actor) return actor.error();
  return Session(std::make_shared<State>(host, std::move(*actor)));
}

Result<std::vector<RankedAnswer>> Session::best_of(Turn turn, std::int32_t n) {
  if (auto checked = can_branch(turn, n); !checked) return checked.error();
  auto trunk = fork();
  if (!trunk) return trunk.error();
  auto begun = trunk->take(prompt_only(turn));
  if (!begun) return begun.error();
  turn = answer_only(std::move(turn));
  std::vector<RankedAnswer> branches;
  std::vector<Asked> asked;
  for (std::int32_t i = 0; i < n; ++i, ++turn.branch) {
    auto branch = trunk->fork(begun->prompt_tokens);
    if (!branch) return branch.error();
    auto under_way = branch->ask(turn, false);
    if (!under_way) return under_way.error();
    branches.push_back({std::move(*branch), {}, turn.branch});
    asked.push_back(std::move(*under_way));
  }
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (auto ended = asked[i].next(); !ended) return ended.error();
    auto end = asked[i].slot->take_end();
    if (!end) return end.error();
    branches[i].end = std::move(*end);
    branches[i].mean_logprob = mean_logprob(branches[i].end);
  }
  std::ranges::stable_sort(branches, std::ranges::greater(), &RankedAnswer::mean_logprob);
  return branches;
}

Result<void> Session::save(const std::string& path) const {
  auto host = state_->host.lock();
  if (!host) return gone();
  auto saved = host->ask_within<bool>(SupervisorOptions::kFileLimit, save_atom_v, state_->actor, path);
  if (!saved) return saved.error();
  return {};
}

Host::Host(std::shared_ptr<State> state) : state_(std::move(state)) {}
Host::Host(Host&&) noexcept = default;
Host& Host::operator=(Host&&) noexcept = default;
Host::~Host() = default;

Result<Host> Host::open(const std::string& model_path, const HostOptions& options) {
  if (inside_actor_thread) return called_inside();
  auto weights = KeyWeights::of(options.key_weights);
  if (!weights) return weights.error();
  if (options.drafts < 0 || options.drafts > HostOptions::kMostDrafts) {
    return Error{ErrorCode::bad_input, "drafts is " + std::to_string(options.drafts) + "; 0 (none) to " +
                                           std::to_string(HostOptions::kMostDrafts) + " are possible"};
  }
  auto engine = Engine::open(model_path, options.engine);
  if (!engine) return engine.error();
  auto draft = open_draft(**engine, options.draft);
  if (!draft) return draft.error();
  auto sleep_room = SleepRoom::open(options.sleep, *(*engine)->pages());
  if (!sleep_room) return sleep_room.error();
  auto record = record_of(**engine, model_path, options.engine, options.record);
  if (!record) return record.error();
  try {
    return Host(std::make_shared<State>(
        std::move(*engine),
        supervision(options, std::move(*weights), std::move(*sleep_room), std::move(*record), std::move(*draft)),
        options.drain_limit));
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::io, "the host cannot start its threads (" + refused.code().message() +
                                    "): raise the system's limit (ulimit -u, ulimit -v, a container's limit of "
                                    "processes)"};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory is left for the host's actors"};
  }
}

Result<Session> Host::open_session(const OpenSession& opening) {
  auto actor = state_->ask<SessionActor>(open_atom_v, opening);
  if (!actor) return actor.error();
  return Session(std::make_shared<Session::State>(state_, std::move(*actor)));
}

Result<Session> Host::load_session(const std::string& path) {
  auto actor = state_->ask_within<SessionActor>(SupervisorOptions::kFileLimit, load_atom_v, path);
  if (!actor) return actor.error();
  return Session(std::make_shared<Session::State>(state_, std::move(*actor)));
}

Result<TurnEnd> Host::generate(Turn turn, const OnDelta& on_delta) {
  OpenSession opening;
  if (turn.sampling) opening.sampling = *turn.sampling;
  auto session = open_session(opening);
  if (!session) return session.error();
  return session->take(std::move(turn), on_delta);
}

Result<HostInfo> Host::describe() const {
  return state_->ask<HostInfo>(describe_atom_v);
}
Result<LaunchStats> Host::launch_stats() const {
  return state_->ask<LaunchStats>(stats_atom_v);
}

}  // namespace troupe
