// The bill of a session: among many who share, fork, sleep, stop and die, all bills are the pool's, at any moment.
#include <condition_variable>
#include <mutex>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sstream>

#include "tests/actors/actor_lab.h"
#include "tests/support/random.h"

namespace troupe::test {
namespace {

// The pool's clock: it moves on with every launch, by an odd number of nanoseconds. While it is stopped, launches wait.
class LaunchTime {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    goes_.wait(lock, [this] { return !stopped_; });
    now_ = now_ + 1'000'003;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  void go_on() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = false;
    }
    goes_.notify_all();
  }
  TimePoint now() const { return TimePoint(std::chrono::nanoseconds(now_)); }

 private:
  std::mutex mutex_;
  std::condition_variable goes_;
  bool stopped_ = false;
  std::atomic<std::int64_t> now_{0};
};

class BilledCrowd {
 public:
  static constexpr std::int64_t kPages = 60;
  static constexpr int kSessions = 24;

  BilledCrowd() : lab_(options(), lab_options(kPages), tiny_path(), SleepOptions{}) {
    engine_ = lab_.shared_engine();
    for (int i = 0; i < kSessions; ++i) sessions_.push_back(lab_.open());
    engine_->pages()->use_clock([this] { return time_.now(); });
  }
  ~BilledCrowd() { lab_.stop(); }

  // Something happens to somebody, and a turn begins.
  void act() {
    SessionActor& session = anybody();
    switch (below(8)) {
      case 0:
        return replace(session, lab_.open(), false);
      case 1:
        return replace(session, lab_.open(), true);
      case 2:
        return caf::anon_send(session, stop_atom_v);
      case 3:
        if (auto branch = lab_.ask<SessionActor>(lab_.host(), fork_atom_v, session, std::int64_t{-1})) {
          SessionActor& other = anybody();
          if (other != session) replace(other, *branch, false);
        }
        return;
      case 4:
        return replace(session, sleeper(), false);
      default:
        say(session);
    }
  }

  // In the middle of everything: time stops, so that all may be asked for one moment.
  void expect_equal_sums() {
    time_.stop();
    const std::shared_ptr<void> at_end(nullptr, [this](void*) { time_.go_on(); });
    for (int i = 0; i < 6; ++i) say(anybody());
    PageTime sum;
    for (const SessionActor& session : sessions_) {
      const auto trace = lab_.ask<SessionTrace>(session, trace_atom_v);
      ASSERT_TRUE(trace) << trace.error().message;
      EXPECT_EQ(trace->times.sum(), trace->age);
      sum = sum + trace->page_time;
      busy_ += trace->phase == SessionPhase::idle ? 0 : 1;
    }
    const PageBill bill = lab_.describe().bill;
    EXPECT_EQ(sum, bill.living);
    EXPECT_EQ(sum + bill.house + bill.ended, bill.total);
  }

  PageBill end() {
    for (const SessionActor& session : sessions_) caf::anon_send(session, close_atom_v);
    EXPECT_EQ(lab_.free_pages_at_rest(), kPages);
    return lab_.describe().bill;
  }
  int slept() const { return slept_; }
  // Sessions that had a turn in work when they were asked.
  int busy() const { return busy_; }

 private:
  int below(int limit) { return static_cast<int>(random_.below(limit)); }
  SessionActor& anybody() { return sessions_[static_cast<std::size_t>(below(kSessions))]; }

  // The first 48 tokens are everybody's.
  Turn turn() { return token_turn(joined(prompt(1, 48), prompt(below(9), 20)), 20); }
  void say(const SessionActor& session) { caf::anon_send(session, say_atom_v, turn()); }
  SessionActor sleeper() {
    const SessionActor session = lab_.open();
    EXPECT_TRUE(lab_.say(session, turn()));
    const auto gave = lab_.ask<bool>(caf::actor_cast<SessionControl>(session), sleep_atom_v);
    slept_ += gave && *gave ? 1 : 0;  // not if the host had asked before
    return session;
  }

  SupervisorOptions options() {
    SupervisorOptions options;
    options.run = [this](std::span<Slice> batch) {
      time_.pass();
      engine_->run(batch);
    };
    return options;
  }

  void replace(SessionActor& session, SessionActor by, bool kill) {
    if (kill) lab_.self()->send_exit(session, caf::exit_reason::kill);
    if (!kill) lab_.self()->send(session, close_atom_v);
    lab_.self()->wait_for(session);
    session = std::move(by);
  }

  Random random_{15};
  LaunchTime time_;
  std::shared_ptr<Engine> engine_;
  ActorLab lab_;
  std::vector<SessionActor> sessions_;
  int slept_ = 0, busy_ = 0;
};

TEST(Bills, of_all_sessions_and_of_the_house_are_the_pools_to_the_nanosecond_at_any_moment) {
  BilledCrowd crowd;
  const int moments = small_scale() ? 40 : 200;
  for (int i = 0; i < moments && !testing::Test::HasFatalFailure(); ++i) {
    for (int act = 0; act < 12; ++act) crowd.act();
    crowd.expect_equal_sums();
  }
  EXPECT_GT(crowd.slept(), 0) << "nobody slept";
  EXPECT_GT(crowd.busy(), moments) << "too few were in the middle of a turn";
  const PageBill bill = crowd.end();
  EXPECT_EQ(bill.living, PageTime{}) << "nobody lives";
  EXPECT_EQ(bill.ended + bill.house, bill.total);
  EXPECT_GT(bill.ended, PageTime{});
  EXPECT_GT(bill.house, PageTime{});
  promise("N15", with_commas(moments) + " moments of " + std::to_string(BilledCrowd::kSessions) +
                     " sessions that share, fork, sleep, stop and die: all bills are the pool's to the nanosecond");
}

TEST(Trace, sums_up_what_its_turns_have_told) {
  ActorLab lab;
  const SessionActor session = lab.open();
  std::int64_t prompts = 0, cached = 0, computed = 0, answers = 0;
  PageTime pages;
  for (int i = 0; i < 3; ++i) {
    const auto end = lab.say(session, token_turn(prompt(i, 30), 7));
    ASSERT_TRUE(end) << end.error().message;
    prompts += end->prompt_tokens, cached += end->cached_tokens, computed += end->computed_tokens;
    answers += std::ssize(end->tokens);
    pages = pages + end->page_time;
  }
  ASSERT_FALSE(lab.say(session, token_turn(prompt(3, 2000), 7))) << "it cannot fit";
  const auto trace = lab.ask<SessionTrace>(session, trace_atom_v);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->turns, 4);
  EXPECT_EQ(trace->prompt_tokens, prompts);
  EXPECT_EQ(trace->cached_tokens, cached);
  EXPECT_EQ(trace->computed_tokens, computed);
  EXPECT_EQ(trace->computed_tokens, static_cast<std::int64_t>(lab.engine().counters().rows));
  EXPECT_EQ(trace->answer_tokens, answers);
  EXPECT_GE(trace->page_time, pages) << "what it held between its turns is its own too";
}

TEST(Trace, is_answered_in_mid_turn_and_counts_what_is_under_way) {
  std::atomic<bool> closed{true};
  std::shared_ptr<Engine> engine;
  SupervisorOptions options;
  options.run = [&](std::span<Slice> batch) {
    closed.wait(true);
    engine->run(batch);
  };
  ActorLab lab(options);
  engine = lab.shared_engine();
  const SessionActor session = lab.open();
  auto pending = lab.self()->request(session, std::chrono::seconds(60), say_atom_v, token_turn(prompt(1, 30), 7));
  Result<SessionTrace> trace = SessionTrace{};
  while (trace && trace->phase != SessionPhase::prefilling) trace = lab.ask<SessionTrace>(session, trace_atom_v);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->turns, 0);
  EXPECT_EQ(trace->prompt_tokens, 30);
  EXPECT_EQ(trace->computed_tokens, 30);
  closed = false;
  closed.notify_all();
  pending.receive([](TurnEnd& end) { EXPECT_EQ(end.tokens.size(), 7u); },
                  [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
}

// In place of the house's own log, for as long as it lives.
class CaughtLog {
 public:
  CaughtLog() : before_(spdlog::get("troupe")) {
    spdlog::drop("troupe");
    auto logger = std::make_shared<spdlog::logger>("troupe", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l %v");
    spdlog::register_logger(std::move(logger));
  }
  CaughtLog(const CaughtLog&) = delete;
  CaughtLog& operator=(const CaughtLog&) = delete;
  ~CaughtLog() {
    spdlog::drop("troupe");
    if (before_) spdlog::register_logger(before_);
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST(Trace, is_a_line_of_the_log_when_a_session_has_ended_however_that_came) {
  CaughtLog log;
  {
    ActorLab lab;
    SessionActor closed = lab.open(), killed = lab.open();
    ASSERT_TRUE(lab.say(closed, token_turn(prompt(1, 30), 7)));
    EXPECT_EQ(log.text(), "") << "nothing for a turn, nothing for a token";
    lab.self()->send(closed, close_atom_v);
    lab.self()->wait_for(closed);
    EXPECT_EQ(log.text().find("info session=1 ended age="), 0u) << log.text();
    EXPECT_NE(log.text().find(" turns=1 prompt_tokens=30 cached_tokens=0 computed_tokens=36 answer_tokens=7 "),
              std::string::npos);
    lab.self()->send_exit(killed, caf::exit_reason::kill);
    lab.self()->wait_for(killed);
  }
  EXPECT_NE(log.text().find("\ninfo session=2 ended age="), std::string::npos) << log.text();
}

}  // namespace
}  // namespace troupe::test
