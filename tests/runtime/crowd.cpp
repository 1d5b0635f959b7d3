#include "tests/runtime/crowd.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tests/runtime/engine_lab.h"

namespace troupe::test {
namespace {

// One sequence after another: a prompt in slices of 1 to 8, then sampled tokens up to a random length.
class Guest {
 public:
  Guest(Engine& engine, std::uint64_t seed) : engine_(engine), random_(seed), cache_(engine.pages()) { begin(); }

  std::int64_t rows_wanted() {
    const auto left = static_cast<std::int64_t>(tokens_.size()) - cache_.length();
    return std::min(left, 1 + random_.below(8));
  }
  Slice slice(std::int64_t rows) {
    const auto at = static_cast<std::size_t>(cache_.length()), count = static_cast<std::size_t>(rows);
    lease_ = cache_.lend();
    return {.cache = &lease_,
            .position = cache_.length(),
            .tokens = std::span(tokens_).subspan(at, count),
            .wants_token = at + count == tokens_.size(),
            .sampling = &sampling_};
  }
  void take(const Slice& slice) {
    cache_.commit(cache_.length() + static_cast<std::int64_t>(slice.tokens.size()));
    lease_ = {};
    if (slice.wants_token) tokens_.push_back(slice.sampled.token);
    if (static_cast<std::int64_t>(tokens_.size()) >= life_) begin();
  }

 private:
  void begin() {
    life_ = 2 + random_.below(60);
    tokens_ = random_tokens(random_, 1 + random_.below(std::min<std::int64_t>(life_, 40)), engine_.shape().vocabulary);
    sampling_.temperature = random_.below(3) == 0 ? 0.0f : 1.0f;
    sampling_.top_k = static_cast<std::int32_t>(random_.below(3) * 20);
    sampling_.seed = random_.next();
    cache_ = KvCache(engine_.pages());
    if (!cache_.reserve(life_ + 8)) throw std::runtime_error("the pool is too small for the crowd");
  }

  Engine& engine_;
  Random random_;
  KvCache cache_;
  KvLease lease_;
  std::vector<TokenId> tokens_;
  SamplingParams sampling_;
  std::int64_t life_ = 0;
};

class Stage {
 public:
  Stage(Engine& engine, const Probe& probe, const CrowdPlan& plan)
      : engine_(engine), probe_(probe), plan_(plan), random_(plan.seed), cache_(engine.pages()), tokens_(probe.prompt) {
    const auto all = static_cast<std::int64_t>(probe.prompt.size()) + probe.decode_steps + 1;
    if (!cache_.reserve(all)) throw std::runtime_error("the pool is too small for the probe");
    tokens_.reserve(static_cast<std::size_t>(all));
    for (int i = 0; i < plan.others; ++i) arrivals_.push_back(random_.below(3));
  }

  Trace run() {
    while (trace_.tokens.size() < static_cast<std::size_t>(probe_.decode_steps) + 1) launch();
    return std::move(trace_);
  }

 private:
  void launch() {
    for (std::int64_t arrival : arrivals_) {
      if (arrival == trace_.launches) guests_.push_back(std::make_unique<Guest>(engine_, random_.next()));
    }
    std::vector<Slice> slices{probe_slice()};
    std::vector<Guest*> owners{nullptr};
    std::int64_t room = engine_.max_rows() - static_cast<std::int64_t>(slices[0].tokens.size());
    for (const auto& guest : guests_) {
      const std::int64_t rows = std::min(room, guest->rows_wanted());
      if (rows < 1) continue;
      slices.push_back(guest->slice(rows));
      owners.push_back(guest.get());
      room -= rows;
    }
    run_shuffled(slices, owners);
    trace_.launches += 1;
    trace_.shared += slices.size() > 1 ? 1 : 0;
    trace_.widths[static_cast<int>(slices.size())] += 1;
  }

  void run_shuffled(std::vector<Slice>& slices, std::vector<Guest*>& owners) {
    for (std::size_t i = slices.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(i)));
      std::swap(slices[i - 1], slices[j]);
      std::swap(owners[i - 1], owners[j]);
    }
    engine_.run(slices);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].failed) throw std::runtime_error(slices[i].failure);
      owners[i] == nullptr ? take_probe(slices[i]) : owners[i]->take(slices[i]);
    }
  }

  Slice probe_slice() {
    const auto at = static_cast<std::size_t>(cache_.length());
    const std::size_t rows = std::min(static_cast<std::size_t>(plan_.slice), tokens_.size() - at);
    const bool keeps = static_cast<std::int64_t>(at + rows) > probe_.keep_from;
    logits_.resize(keeps ? rows * static_cast<std::size_t>(engine_.shape().vocabulary) : 0);
    lease_ = cache_.lend();
    return {.cache = &lease_,
            .position = cache_.length(),
            .tokens = std::span(tokens_).subspan(at, rows),
            .wants_token = at + rows == tokens_.size(),
            .sampling = &probe_.sampling,
            .logprobs = 2,
            .logits = logits_};
  }

  void take_probe(const Slice& slice) {
    const std::int64_t skipped =
        std::clamp<std::int64_t>(probe_.keep_from - slice.position, 0, std::ssize(slice.tokens));
    const auto first = std::min<std::int64_t>(skipped * engine_.shape().vocabulary, std::ssize(logits_));
    trace_.logits.insert(trace_.logits.end(), logits_.begin() + first, logits_.end());
    cache_.commit(cache_.length() + std::ssize(slice.tokens));
    lease_ = {};
    if (!slice.wants_token) return;
    tokens_.push_back(slice.sampled.token);
    trace_.tokens.push_back(slice.sampled.token);
    trace_.logprobs.push_back(slice.sampled.logprob);
    for (const TokenLogprob& one : slice.sampled.top) trace_.logprobs.push_back(one.logprob);
  }

  Engine& engine_;
  const Probe& probe_;
  CrowdPlan plan_;
  Random random_;
  KvCache cache_;
  KvLease lease_;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<std::int64_t> arrivals_;
  std::vector<std::unique_ptr<Guest>> guests_;
  Trace trace_;
};

template <class T>
std::string first_difference(const char* what, const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size())
    return std::string(what) + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0) return "";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    return std::string(what) + "[" + std::to_string(i) + "]: " + std::to_string(a[i]) + " and " + std::to_string(b[i]);
  }
  return "";
}

}  // namespace

std::string Trace::describe() const {
  return std::to_string(launches) + " launches, " + std::to_string(shared) + " shared, widths " +
         std::to_string(widths.begin()->first) + "-" + std::to_string(widths.rbegin()->first);
}

Trace run_probe(Engine& engine, const Probe& probe, const CrowdPlan& plan) {
  return Stage(engine, probe, plan).run();
}

std::string difference(const Trace& alone, const Trace& crowded) {
  if (auto text = first_difference("logits", alone.logits, crowded.logits); !text.empty()) return text;
  if (auto text = first_difference("log-probabilities", alone.logprobs, crowded.logprobs); !text.empty()) return text;
  return first_difference("tokens", alone.tokens, crowded.tokens);
}

std::uint64_t hash(const Trace& trace) {
  std::uint64_t hash = 1469598103934665603ull;
  const auto add = [&hash](std::uint32_t word) { hash = (hash ^ word) * 1099511628211ull; };
  for (float value : trace.logits) add(std::bit_cast<std::uint32_t>(value));
  for (float value : trace.logprobs) add(std::bit_cast<std::uint32_t>(value));
  for (TokenId token : trace.tokens) add(static_cast<std::uint32_t>(token));
  return hash;
}

}  // namespace troupe::test
