// A house without arithmetic: a StepQueue, sessions that send their next step as soon as they are answered, and a
// machine whose launches take as long as a formula says. Time is a number, so a second of load is a moment of test, and
// the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/step_queue.h"
#include "tests/support/random.h"

namespace troupe::test {

// Seconds of a launch: each part, times a noise of about +-`noise`, and in one launch of `disturbed_in` four times
// that.
struct Machine {
  const char* name;
  double launch, row, attended;
  double noise = 0.1;
  std::int64_t disturbed_in = 0;  // 0: none is
};

inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1];
}

class SimulatedHouse {
 public:
  SimulatedHouse(const Machine& machine, std::int64_t max_rows, KeyWeights weights = {}, std::uint64_t seed = 1)
      : machine_(machine),
        random_(seed),
        disturbance_(random_.below(1000)),
        queue_(max_rows, StepQueue::kLinger, std::move(weights)) {}

  // A session with `position` tokens behind it that decodes for ever.
  std::size_t add_stream(const std::string& key, std::int64_t position = 100, bool background = false) {
    return add(key, position, position + 2000, 1, background);
  }
  // One that sends a prompt, and another of the same length as soon as that is computed.
  std::size_t add_prompts(const std::string& key, std::int64_t tokens, bool background = false) {
    return add(key, 0, tokens, tokens, background);
  }

  // One launch; false when nobody wants any.
  bool launch() {
    const std::span<Slice> batch = queue_.gather();
    if (batch.empty()) return false;
    LaunchWork work;
    for (const Slice& slice : batch) {
      Session& session = sessions_[static_cast<std::size_t>(slice.tokens[0])];
      const auto rows = static_cast<std::int64_t>(slice.tokens.size());
      work.add(slice.position, rows);
      rows_[session.key] += rows;
      session.rows += rows;
      session.longest_wait = std::max(session.longest_wait, launches_ - session.served_in - 1);
      session.served_in = launches_;
    }
    ++launches_;
    const double took = seconds_of(work);
    now_ += std::chrono::duration_cast<TimePoint::duration>(Seconds(took));
    queue_.finish(now_, Seconds(took));
    for (std::size_t i : std::exchange(answered_, {})) go_on(sessions_[i], i);
    return true;
  }

  double seconds() const { return Seconds(now_.time_since_epoch()).count(); }
  std::int64_t rows_of(const std::string& key) { return rows_[key]; }
  std::int64_t rows_of(std::size_t session) const { return sessions_[session].rows; }
  // Launches in a row in which the session had no row.
  std::int64_t longest_wait(std::size_t session) const { return sessions_[session].longest_wait; }
  std::int64_t turns(std::size_t session) const { return sessions_[session].turns; }
  // Between the answers of all streams since the last forget_gaps(), in seconds.
  const std::vector<double>& gaps() const { return gaps_; }
  void forget_gaps() { gaps_.clear(); }
  void forget_rows() { rows_.clear(); }

 private:
  struct Session {
    std::string key;
    bool background = false;
    std::int64_t step = 1;  // tokens
    std::int64_t begins_at = 0, room = 0;
    std::int64_t rows = 0, turns = 0, served_in = -1, longest_wait = 0;
    TimePoint answered{};
    std::unique_ptr<KvCache> cache{};
  };

  std::size_t add(const std::string& key, std::int64_t position, std::int64_t room, std::int64_t step,
                  bool background) {
    Session session{key, background, step, position, room};
    session.answered = now_;
    session.served_in = launches_ - 1;
    sessions_.push_back(std::move(session));
    begin(sessions_.back());
    push(sessions_.back(), sessions_.size() - 1);
    return sessions_.size() - 1;
  }

  void begin(Session& session) {
    const std::int64_t pages = pages_for(session.room) + 1;
    const auto pool = std::make_shared<PagePool>(allocate_host(static_cast<std::size_t>(pages) * layout_.page_bytes()),
                                                 layout_, pages);
    session.cache = std::make_unique<KvCache>(pool);
    ASSERT_TRUE(session.cache->reserve(session.room));
    session.cache->lend();
    session.cache->commit(session.begins_at);
  }

  void push(Session& session, std::size_t index) {
    Step step;
    step.session = index;
    step.key = session.key;
    step.background = session.background;
    step.cache = session.cache->lend();
    step.tokens.assign(static_cast<std::size_t>(session.step), static_cast<TokenId>(index));
    queue_.push(std::move(step), [this, index](Result<StepTokens> sampled) {
      ASSERT_TRUE(sampled.ok());
      answered_.push_back(index);
    });
  }

  void go_on(Session& session, std::size_t index) {
    ++session.turns;
    if (session.step == 1) gaps_.push_back(Seconds(now_ - session.answered).count());
    session.answered = now_;
    session.cache->commit(session.cache->length() + session.step);
    if (session.cache->length() == session.room) begin(session);
    push(session, index);
  }

  double seconds_of(const LaunchWork& work) {
    const double plain =
        machine_.launch + machine_.row * static_cast<double>(work.rows) + machine_.attended * work.attended;
    const double noise = 1.0 + machine_.noise * random_.signed_unit();
    const bool disturbed = machine_.disturbed_in > 0 && (launches_ + disturbance_) % machine_.disturbed_in == 0;
    return plain * noise * (disturbed ? 3.0 : 1.0);
  }

  Machine machine_;
  Random random_;
  std::int64_t disturbance_;  // in which launch
  KvLayout layout_{1, 1, 16, KvType::f16};
  std::deque<Session> sessions_;
  StepQueue queue_;
  TimePoint now_{};
  std::int64_t launches_ = 0;
  std::map<std::string, std::int64_t> rows_;
  std::vector<std::size_t> answered_;
  std::vector<double> gaps_;
};

}  // namespace troupe::test
