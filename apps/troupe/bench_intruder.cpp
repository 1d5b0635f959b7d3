#include "apps/troupe/bench_intruder.h"

#include <algorithm>
#include <future>

#include "apps/troupe/bench_host.h"

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

struct Disturbance {
  Clock::time_point came, done;
  std::vector<std::vector<Clock::time_point>> tokens;  // of each of the others
  std::vector<std::vector<TokenId>> answers;
  std::optional<Error> error;
};

// Opens the load's sessions and one more, lets them talk, then sends the long prompt through the last; ends with that
// one's first token.
class IntruderState {
 public:
  static constexpr const char* name = "troupe.bench.intruder";

  IntruderState(SinkActor::pointer self, HostActor host, Load load, std::int32_t intruder, std::int64_t vocabulary,
                std::shared_ptr<std::promise<Disturbance>> done)
      : self_(self),
        host_(std::move(host)),
        load_(load),
        intruder_(intruder),
        vocabulary_(vocabulary),
        done_(std::move(done)) {
    disturbance_.tokens.resize(static_cast<std::size_t>(load.sessions));
    disturbance_.answers.resize(disturbance_.tokens.size());
  }

  SinkActor::behavior_type make_behavior() {
    for (int i = 0; i <= load_.sessions; ++i) open();
    return {[this](TextDelta& delta) { on_delta(delta); }};
  }

 private:
  void open() {
    self_->request(host_, BenchHost::kLimit, open_atom_v, OpenSession{})
        .then(
            [this](SessionActor& session) {
              sessions_.push_back(std::move(session));
              if (std::ssize(sessions_) == load_.sessions + 1) start();
            },
            [this](caf::error& error) { fail(error); });
  }

  void start() {
    for (int i = 0; i < load_.sessions; ++i) {
      say(static_cast<std::size_t>(i), token_turn(prompt_of(i, load_, vocabulary_), longest_answer(load_, intruder_)));
    }
    if (load_.sessions == 0) intrude();
  }

  void say(std::size_t index, const Turn& turn) {
    self_->request(sessions_[index], BenchHost::kLimit, say_atom_v, turn, SinkActor(self_))
        .then([](TurnEnd&) {}, [this](caf::error& error) { fail(error); });
  }

  void intrude() {
    disturbance_.came = Clock::now();
    const auto number = static_cast<std::uint64_t>(load_.sessions) + 1;
    say(sessions_.size() - 1, token_turn(tokens_of(number, intruder_, vocabulary_), 2));
  }

  void on_delta(TextDelta& delta) {
    const auto now = Clock::now();
    const auto sender = caf::actor_cast<SessionActor>(self_->current_sender());
    const auto index = static_cast<std::size_t>(std::ranges::find(sessions_, sender) - sessions_.begin());
    self_->send(sender, credit_atom_v, std::int32_t{1});
    if (index == disturbance_.tokens.size()) {
      disturbance_.done = now;
      return finish();
    }
    auto& times = disturbance_.tokens[index];
    const auto before = std::ssize(times);
    times.insert(times.end(), delta.tokens.size(), now);
    auto& answer = disturbance_.answers[index];
    answer.insert(answer.end(), delta.tokens.begin(), delta.tokens.end());
    if (before < load_.generate && std::ssize(times) >= load_.generate && ++talking_ == load_.sessions) intrude();
  }

  void fail(const caf::error& error) {
    if (!disturbance_.error) disturbance_.error = from_caf(error);
    finish();
  }

  void finish() {
    if (!done_) return;
    for (auto& session : sessions_) caf::anon_send(session, close_atom_v);
    std::exchange(done_, nullptr)->set_value(std::move(disturbance_));
    self_->quit();
  }

  SinkActor::pointer self_;
  HostActor host_;
  Load load_;
  std::int32_t intruder_;
  std::int64_t vocabulary_;
  std::shared_ptr<std::promise<Disturbance>> done_;
  std::vector<SessionActor> sessions_;
  Disturbance disturbance_;
  int talking_ = 0;
};

Disturbance disturb(const std::shared_ptr<Engine>& engine, const Load& load, std::int32_t intruder) {
  BenchHost host(engine, load);
  auto done = std::make_shared<std::promise<Disturbance>>();
  auto outcome = done->get_future();
  host.system().spawn<SinkActor::stateful_impl<IntruderState>>(host.host(), load, intruder, engine->shape().vocabulary,
                                                               done);
  return outcome.get();
}

// A gap counts as usual when it ended before the prompt came, and as disturbed when it began before the prompt was
// done.
void sort_gaps(const Disturbance& disturbance, IntruderResult& result) {
  for (const auto& times : disturbance.tokens) {
    for (std::size_t k = 1; k < times.size(); ++k) {
      auto& gaps = times[k] <= disturbance.came ? result.usual_gap_ms : result.gap_ms;
      gaps.push_back(ms_between(times[k - 1], times[k]));
    }
  }
}

}  // namespace

std::int32_t longest_answer(const Load& load, std::int32_t intruder) {
  constexpr std::int32_t kSlowestSlice = 16;  // tokens of the prompt for each of the others'
  return load.generate + 1 + intruder / kSlowestSlice;
}

Result<IntruderResult> run_intruder(const std::shared_ptr<Engine>& engine, const Load& load, std::int32_t intruder) {
  Load nobody = load;
  nobody.sessions = 0;
  const Disturbance alone = disturb(engine, nobody, intruder);
  if (alone.error) return *alone.error;
  Disturbance beside = disturb(engine, load, intruder);
  if (beside.error) return *beside.error;
  IntruderResult result;
  result.alone_ms = ms_between(alone.came, alone.done);
  result.first_token_ms = ms_between(beside.came, beside.done);
  sort_gaps(beside, result);
  result.answers = std::move(beside.answers);
  return result;
}

}  // namespace troupe::app
