#include "apps/troupe/bench_load.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>

#include "apps/troupe/bench_company.h"
#include "apps/troupe/bench_host.h"

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLimit = BenchHost::kLimit;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

struct Outcome {
  std::vector<Clock::time_point> came;                 // by session
  std::vector<std::vector<Clock::time_point>> tokens;  // by session, when each delta came
  std::vector<TurnEnd> ends;
  LaunchStats all_decode, first_end;  // when the last session had its first token, and when the first session ended
  std::optional<Error> error;
};

// Opens the sessions, starts each turn when it is due, is their sink, and reports when all have ended.
class CollectorState {
 public:
  static constexpr const char* name = "troupe.bench";

  CollectorState(SinkActor::pointer self, HostActor host, Load load, std::int64_t vocabulary,
                 std::shared_ptr<std::promise<Outcome>> done)
      : self_(self), host_(std::move(host)), load_(load), vocabulary_(vocabulary), done_(std::move(done)) {}

  SinkActor::behavior_type make_behavior() {
    for (int i = 0; i < load_.sessions; ++i) open();
    return {[this](TextDelta& delta) {
      const auto now = Clock::now();
      const auto sender = caf::actor_cast<SessionActor>(self_->current_sender());
      const auto index = static_cast<std::size_t>(std::ranges::find(sessions_, sender) - sessions_.begin());
      if (outcome_.tokens[index].empty() && ++begun_ == load_.sessions) look(outcome_.all_decode);
      outcome_.tokens[index].insert(outcome_.tokens[index].end(), delta.tokens.size(), now);
      self_->send(sender, credit_atom_v, std::int32_t{1});
    }};
  }

 private:
  void open() {
    self_->request(host_, kLimit, open_atom_v, OpenSession{})
        .then(
            [this](SessionActor& session) {
              sessions_.push_back(std::move(session));
              if (static_cast<int>(sessions_.size()) == load_.sessions) start();
            },
            [this](caf::error& error) { fail(error); });
  }

  void start() {
    outcome_.came.resize(sessions_.size());
    outcome_.tokens.resize(sessions_.size());
    outcome_.ends.resize(sessions_.size());
    const std::vector<Seconds> arrivals = arrivals_of(load_);
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      if (arrivals[i] == Seconds(0)) {
        say(i);
      } else {
        self_->run_delayed(arrivals[i], [this, i] { say(i); });
      }
    }
  }

  void say(std::size_t i) {
    const Turn turn = token_turn(prompt_of(static_cast<int>(i), load_, vocabulary_), load_.generate);
    outcome_.came[i] = Clock::now();
    self_->request(sessions_[i], kLimit, say_atom_v, turn, SinkActor(self_))
        .then(
            [this, i](TurnEnd& end) {
              outcome_.ends[i] = std::move(end);
              if (ended_ == 0) look(outcome_.first_end);
              ++ended_;
              finish_when_done();
            },
            [this](caf::error& error) { fail(error); });
  }

  void look(LaunchStats& place) {
    ++looking_;
    self_->request(host_, kLimit, stats_atom_v)
        .then(
            [this, &place](LaunchStats& stats) {
              place = std::move(stats);
              --looking_;
              finish_when_done();
            },
            [this](caf::error& error) { fail(error); });
  }

  void fail(const caf::error& error) {
    if (!outcome_.error) outcome_.error = from_caf(error);
    finish();
  }

  void finish_when_done() {
    if (ended_ == load_.sessions && looking_ == 0) finish();
  }

  void finish() {
    if (!done_) return;
    for (auto& session : sessions_) caf::anon_send(session, close_atom_v);
    std::exchange(done_, nullptr)->set_value(std::move(outcome_));
    self_->quit();
  }

  SinkActor::pointer self_;
  HostActor host_;
  Load load_;
  std::int64_t vocabulary_;
  std::shared_ptr<std::promise<Outcome>> done_;
  std::vector<SessionActor> sessions_;
  Outcome outcome_;
  int begun_ = 0, ended_ = 0, looking_ = 0;
};

// Sessions a launch while all were decoding.
double mean_width(const LaunchStats& from, const LaunchStats& to) {
  double launches = 0, sessions = 0;
  for (std::size_t w = 1; w < to.by_decode_width.size(); ++w) {
    const auto before = w < from.by_decode_width.size() ? from.by_decode_width[w] : 0;
    launches += static_cast<double>(to.by_decode_width[w] - before);
    sessions += static_cast<double>(w * (to.by_decode_width[w] - before));
  }
  return launches > 0 ? sessions / launches : 0.0;
}

LoadResult digest(Outcome outcome, LaunchStats launches, bool one_by_one) {
  LoadResult result;
  result.launches = std::move(launches);
  const Clock::time_point began = *std::ranges::min_element(outcome.came);
  Clock::time_point last_first = began, last = began;
  for (std::size_t i = 0; i < outcome.tokens.size(); ++i) {
    result.answers.push_back(std::move(outcome.ends[i].tokens));
    result.cached_tokens += outcome.ends[i].cached_tokens;
    const auto& times = outcome.tokens[i];
    if (times.empty()) continue;
    result.first_token_ms.push_back(1e3 * seconds_between(outcome.came[i], times.front()));
    last_first = std::max(last_first, times.front());
    last = std::max(last, times.back());
    for (std::size_t k = 1; k < times.size(); ++k)
      result.gap_ms.push_back(1e3 * seconds_between(times[k - 1], times[k]));
  }
  result.seconds = seconds_between(began, last);
  // Tokens that came while all were decoding: what a prompt still computes would be counted against decode otherwise.
  const Clock::time_point from = one_by_one ? began : last_first;
  double counted = 0;
  for (const auto& times : outcome.tokens) {
    counted += static_cast<double>(std::ranges::count_if(times, [&](auto t) { return t > from; }));
  }
  result.tokens_per_second = last > from ? counted / seconds_between(from, last) : 0;
  result.mean_width = one_by_one ? mean_width({}, result.launches) : mean_width(outcome.all_decode, outcome.first_end);
  return result;
}

constexpr std::size_t kBandwidthBytes = std::size_t{1} << 30;

double best_read_rate(const Buffer& memory, int threads) {
  constexpr std::size_t kWords = kBandwidthBytes / sizeof(std::uint64_t);
  constexpr int kPasses = 5;
  auto* words = reinterpret_cast<std::uint64_t*>(memory.data());
  std::fill_n(words, kWords, 1);
  const std::size_t share = kWords / static_cast<std::size_t>(threads);
  double best = 0;
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto began = Clock::now();
    {
      std::vector<std::jthread> readers;
      readers.reserve(static_cast<std::size_t>(threads));
      for (int t = 0; t < threads; ++t) {
        readers.emplace_back([&, t] {
          const std::uint64_t* from = words + static_cast<std::size_t>(t) * share;
          sums[static_cast<std::size_t>(t) * 8] += std::accumulate(from, from + share, std::uint64_t{0});
        });
      }
    }
    best = std::max(best, static_cast<double>(kBandwidthBytes) / 1e9 / seconds_between(began, Clock::now()));
  }
  return best;
}

}  // namespace

Result<LoadResult> run_load(const std::shared_ptr<Engine>& engine, const Load& load) {
  const std::int64_t vocabulary = engine->shape().vocabulary;
  BenchHost host(engine, load);
  BenchCompany company(host, load.company, vocabulary);
  auto done = std::make_shared<std::promise<Outcome>>();
  auto outcome = done->get_future();
  host.system().spawn<SinkActor::stateful_impl<CollectorState>>(host.host(), load, vocabulary, done);
  Outcome finished = outcome.get();
  if (finished.error) return *finished.error;
  auto told = company.leave();
  if (!told) return told.error();
  auto launches = host.stats();
  if (!launches) return launches.error();
  LoadResult result = digest(std::move(finished), std::move(*launches), load.arrivals_a_second > 0.0);
  result.company = *told;
  return result;
}

Result<double> read_bandwidth(int threads) {
  try {
    return best_read_rate(allocate_host(kBandwidthBytes), threads);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 "no memory for the gigabyte that the read bandwidth is measured on; leave it out with --no-bandwidth"};
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::io, "the read bandwidth needs " + std::to_string(threads) + " threads: " + refused.what() +
                                    "; give fewer with --threads"};
  }
}

}  // namespace troupe::app
