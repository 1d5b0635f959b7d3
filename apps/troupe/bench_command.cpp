#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/troupe/bench_load.h"
#include "apps/troupe/command.h"
#include "apps/troupe/memory.h"
#include "apps/troupe/options.h"
#include "apps/troupe/plain_loop.h"

namespace troupe::app {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  std::vector<int> sessions{1, 2, 4, 8, 16, 32};
  std::int32_t prompt = 32;
  std::int32_t generate = 64;
  bool json = false;
  bool no_table = false;
  bool no_bandwidth = false;
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

class Bench {
 public:
  Bench(std::shared_ptr<Engine> engine, const Flags& flags) : engine_(std::move(engine)), flags_(flags) {}

  int run() {
    std::fprintf(stderr, "%s\n", engine_->describe().c_str());
    report_["model"] = engine_->shape().name;
    report_["engine"] = engine_->describe();
    report_["prompt"] = flags_.prompt;
    report_["generate"] = flags_.generate;
    say("%8s %10s %10s %9s %9s %9s %9s %7s %12s\n", "sessions", "tokens/s", "each", "ttft p50", "ttft max", "gap p50",
        "gap p99", "width", "actors us");
    for (int sessions : flags_.sessions) {
      if (auto done = one(sessions); !done) return complain(done.error());
    }
    if (!flags_.no_table) {
      if (auto done = fused_table(); !done) return complain(done.error());
    }
    const double peak = peak_resident_megabytes();  // before the bandwidth's own gigabyte
    report_["peak_megabytes"] = peak;
    say("\npeak memory %.0f MB\n", peak);
    if (!flags_.no_bandwidth) bandwidth();
    if (flags_.json) std::printf("%s\n", report_.dump(1).c_str());
    return kDone;
  }

 private:
  // The table is for people: on stdout, or on stderr beside --json.
  template <class... Args>
  void say(const char* format, Args... args) {
    std::fprintf(flags_.json ? stderr : stdout, format, args...);
  }

  Result<void> one(int sessions) {
    const Load load{sessions, flags_.prompt, flags_.generate, true};
    if (auto fits = check(load); !fits) return fits;
    const LoopResult loop = run_loop(*engine_, load);
    auto result = run_load(engine_, load);
    if (!result) return result.error();
    if (result->answers != loop.answers) {
      return Error{ErrorCode::engine_failed, "the sessions' tokens differ from the plain loop's: please report this"};
    }
    if (sessions == 1) solo_ = result->tokens_per_second;
    // Median against median: a mean would mostly tell what else the machine was doing.
    const double actors_us = 1e3 * quantile(result->gap_ms, 0.5) - 1e6 * loop.seconds_a_launch;
    say("%8d %10.1f %10.1f %7.0fms %7.0fms %7.1fms %7.1fms %7.2f %+10.0fus\n", sessions, result->tokens_per_second,
        result->tokens_per_second / sessions, quantile(result->first_token_ms, 0.5),
        quantile(result->first_token_ms, 1.0), quantile(result->gap_ms, 0.5), quantile(result->gap_ms, 0.99),
        result->mean_width, actors_us);
    report_["runs"].push_back({{"sessions", sessions},
                               {"tokens_per_second", result->tokens_per_second},
                               {"tokens_per_second_each", result->tokens_per_second / sessions},
                               {"first_token_ms_p50", quantile(result->first_token_ms, 0.5)},
                               {"first_token_ms_max", quantile(result->first_token_ms, 1.0)},
                               {"gap_ms_p50", quantile(result->gap_ms, 0.5)},
                               {"gap_ms_p99", quantile(result->gap_ms, 0.99)},
                               {"mean_launch_width", result->mean_width},
                               {"launch_width_histogram", result->launches.by_decode_width},
                               {"launches", result->launches.launches},
                               {"loop_tokens_per_second", loop.tokens_per_second},
                               {"prefill_tokens_per_second", loop.prefill_tokens_per_second},
                               {"actor_microseconds_a_launch", actors_us}});
    return {};
  }

  Result<void> check(const Load& load) const {
    const std::int64_t tokens = load.prompt + load.generate;
    if (tokens > engine_->context()) {
      return Error{ErrorCode::context_length, std::to_string(tokens) + " tokens a session; the context holds " +
                                                  std::to_string(engine_->context())};
    }
    const std::int64_t pages = load.sessions * pages_for(tokens);
    if (pages <= engine_->pages()->total()) return {};
    return Error{ErrorCode::out_of_memory, std::to_string(load.sessions) + " sessions need " + std::to_string(pages) +
                                               " pages of KV memory; there are " +
                                               std::to_string(engine_->pages()->total()) +
                                               ": give more with --kv-memory"};
  }

  // Concurrency 1 or N x fused or not, the same work in each cell: what fusing brings, and what threading alone does
  // not.
  Result<void> fused_table() {
    const int many = flags_.sessions.empty() ? 16 : *std::ranges::max_element(flags_.sessions);
    say("\n%-22s %12s %12s\n", "tokens/s in all", "unfused", "fused");
    Json cells = Json::array();
    for (int sessions : {1, many}) {
      double rate[2] = {};
      for (int fused = 0; fused < 2; ++fused) {
        auto result = run_load(engine_, {sessions, flags_.prompt, flags_.generate, fused == 1});
        if (!result) return result.error();
        rate[fused] = result->tokens_per_second;
        cells.push_back({{"sessions", sessions}, {"fused", fused == 1}, {"tokens_per_second", rate[fused]}});
      }
      say("concurrency %-10d %12.1f %12.1f\n", sessions, rate[0], rate[1]);
    }
    report_["fused_table"] = cells;
    return {};
  }

  void bandwidth() {
    const int threads = flags_.model.threads > 0 ? flags_.model.threads : usable_cpus();
    const double ceiling = read_bandwidth(threads);
    const double used = solo_ * static_cast<double>(engine_->shape().weight_bytes) / 1e9;
    say("read bandwidth %.1f GB/s with %d threads", ceiling, threads);
    if (solo_ > 0) say("; one session reads weights at %.1f GB/s, %.0f %% of it", used, 100 * used / ceiling);
    say("\n");
    report_["read_bandwidth_gb_per_second"] = ceiling;
    if (solo_ > 0) report_["one_session_share_of_bandwidth"] = used / ceiling;
  }

  std::shared_ptr<Engine> engine_;
  Flags flags_;
  Json report_;
  double solo_ = 0.0;
};

int bench(const Flags& flags) {
  auto engine = Engine::open(flags.model.model, flags.model.engine_options());
  if (!engine) return complain(engine.error());
  return Bench(std::move(*engine), flags).run();
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("bench", "Tokens per second and latency with 1, 2, 4, ... sessions at once");
  auto flags = std::make_shared<Flags>();
  flags->model.add_to(*command);
  command->add_option("--sessions", flags->sessions, "Numbers of sessions, as 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--prompt", flags->prompt, "Prompt tokens of each session")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--generate", flags->generate, "Tokens each session generates")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "A JSON report on stdout (the table then goes to stderr)");
  command->add_flag("--no-table", flags->no_table, "Leave the fused/unfused comparison out");
  command->add_flag("--no-bandwidth", flags->no_bandwidth, "Leave the measurement of the memory's read bandwidth out");
  command->callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

}  // namespace troupe::app
