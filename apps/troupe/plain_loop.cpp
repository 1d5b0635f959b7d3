#include "apps/troupe/plain_loop.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "kernels/check.h"

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

struct Sequence {
  KvCache cache;
  std::vector<TokenId> next;  // what the next launch computes
  std::vector<TokenId> answer;
};

class Loop {
 public:
  Loop(Engine& engine, const Load& load) : engine_(engine) {
    for (int i = 0; i < load.sessions; ++i) {
      KvCache cache(engine.pages());
      TROUPE_CHECK(cache.reserve(load.prompt + load.generate));
      sequences_.push_back({std::move(cache), {}, {}});
    }
  }

  // One token of every sequence.
  void step() {
    const auto most = static_cast<std::size_t>(engine_.max_rows());
    for (std::size_t at = 0; at < sequences_.size(); at += most) {
      launch(std::span(sequences_).subspan(at, std::min(most, sequences_.size() - at)), true);
    }
  }

  void prefill(std::size_t which, const std::vector<TokenId>& prompt) {
    const auto most = static_cast<std::size_t>(engine_.max_rows());
    Sequence& sequence = sequences_[which];
    for (std::size_t at = 0; at < prompt.size(); at += most) {
      const std::size_t end = std::min(at + most, prompt.size());
      sequence.next.assign(prompt.begin() + static_cast<std::ptrdiff_t>(at),
                           prompt.begin() + static_cast<std::ptrdiff_t>(end));
      launch({&sequence, 1}, end == prompt.size());
    }
  }

  std::vector<std::vector<TokenId>> answers() const {
    std::vector<std::vector<TokenId>> all;
    for (const Sequence& one : sequences_) all.push_back(one.answer);
    return all;
  }

 private:
  void launch(std::span<Sequence> together, bool samples) {
    leases_.clear();
    batch_.assign(together.size(), {});
    for (Sequence& one : together) leases_.push_back(one.cache.lend());
    for (std::size_t i = 0; i < together.size(); ++i) {
      batch_[i].cache = &leases_[i];
      batch_[i].position = leases_[i].position();
      batch_[i].tokens = together[i].next;
      batch_[i].wants_token = samples;
      batch_[i].no_end_for = 1;
      batch_[i].sampling = &greedy_;
    }
    engine_.run(batch_);
    for (std::size_t i = 0; i < together.size(); ++i) {
      Sequence& one = together[i];
      one.cache.commit(leases_[i].position() + static_cast<std::int64_t>(one.next.size()));
      if (!samples) continue;
      one.next = {batch_[i].sampled.token};
      one.answer.push_back(batch_[i].sampled.token);
    }
  }

  Engine& engine_;
  const SamplingParams greedy_ = SamplingParams::greedy();
  std::vector<Sequence> sequences_;
  std::vector<KvLease> leases_;
  std::vector<Slice> batch_;
};

}  // namespace

LoopResult run_loop(Engine& engine, const Load& load) {
  LoopResult result;
  Loop loop(engine, load);
  const auto began_prefill = Clock::now();
  for (int i = 0; i < load.sessions; ++i) {
    loop.prefill(static_cast<std::size_t>(i), prompt_of(i, load, engine.shape().vocabulary));
  }
  result.prefill_tokens_per_second = static_cast<double>(load.sessions) * load.prompt / seconds_since(began_prefill);
  std::vector<double> seconds;
  for (std::int32_t t = 1; t < load.generate; ++t) {
    const auto began = Clock::now();
    loop.step();
    seconds.push_back(seconds_since(began));
  }
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  result.tokens_per_second = static_cast<double>(load.sessions) * static_cast<double>(seconds.size()) / total;
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
  result.seconds_a_launch = seconds[seconds.size() / 2];
  result.answers = loop.answers();
  return result;
}

}  // namespace troupe::app
