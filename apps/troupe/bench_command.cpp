#include <algorithm>
#include <exception>

#include "apps/troupe/bench_load.h"
#include "apps/troupe/bench_report.h"
#include "apps/troupe/command.h"
#include "apps/troupe/memory.h"
#include "apps/troupe/options.h"
#include "apps/troupe/plain_loop.h"

namespace troupe::app {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<int> sessions{1, 2, 4, 8, 16, 32};
  Load load;  // of each run, but for its sessions
  bool json = false;
  bool no_table = false;
  bool no_bandwidth = false;
};

class Bench {
 public:
  Bench(std::shared_ptr<Engine> engine, const BenchFlags& flags, BenchReport& report)
      : engine_(std::move(engine)), flags_(flags), report_(report) {}

  Result<void> run() {
    // All of them, before the first takes its minutes.
    for (int sessions : flags_.sessions) {
      if (auto fits = check(sessions); !fits) return fits;
    }
    report_.begin(*engine_, flags_.load);
    for (int sessions : flags_.sessions) {
      if (auto done = one(sessions); !done) return done;
    }
    if (!flags_.no_table) {
      if (auto done = fused_table(); !done) return done;
    }
    report_.peak_memory(peak_resident_megabytes());  // before the bandwidth's own gigabyte
    return flags_.no_bandwidth ? Result<void>() : bandwidth();
  }

 private:
  Load load(int sessions, bool fuse = true) const { return {sessions, flags_.load.prompt, flags_.load.generate, fuse}; }

  Result<void> one(int sessions) {
    const LoopResult loop = run_loop(*engine_, load(sessions));
    auto result = run_load(engine_, load(sessions));
    if (!result) return result.error();
    if (result->answers != loop.answers) {
      return Error{ErrorCode::engine_failed, "the sessions' tokens differ from the plain loop's: please report this"};
    }
    if (sessions == 1) solo_ = result->tokens_per_second;
    report_.run(sessions, *result, loop);
    return {};
  }

  Result<void> check(int sessions) const {
    const std::int64_t tokens = std::int64_t{flags_.load.prompt} + flags_.load.generate;
    if (tokens > engine_->context()) {
      return Error{ErrorCode::context_length, std::to_string(tokens) + " tokens a session; the context holds " +
                                                  std::to_string(engine_->context()) +
                                                  ": give less with --prompt or --generate"};
    }
    const std::int64_t pages = sessions * pages_for(tokens), there = engine_->pages()->total();
    if (pages <= there) return {};
    return Error{ErrorCode::out_of_memory, std::to_string(sessions) + " sessions need " + std::to_string(pages) +
                                               " pages of KV memory; there are " + std::to_string(there) +
                                               ": give more with --kv-memory, or fewer with --sessions"};
  }

  // Concurrency 1 or N x fused or not, the same work in each cell: what fusing brings, and what threading alone does
  // not.
  Result<void> fused_table() {
    report_.begin_fused_table();
    for (int sessions : {1, *std::ranges::max_element(flags_.sessions)}) {
      double rate[2] = {};
      for (int fused = 0; fused < 2; ++fused) {
        auto result = run_load(engine_, load(sessions, fused == 1));
        if (!result) return result.error();
        rate[fused] = result->tokens_per_second;
      }
      report_.fused_row(sessions, rate[0], rate[1]);
    }
    return {};
  }

  Result<void> bandwidth() {
    const int threads = flags_.model.threads > 0 ? flags_.model.threads : usable_cpus();
    const Result<double> ceiling = read_bandwidth(threads);
    if (!ceiling) return ceiling.error();
    report_.bandwidth(*ceiling, threads, solo_ * static_cast<double>(engine_->shape().weight_bytes) / 1e9);
    return {};
  }

  std::shared_ptr<Engine> engine_;
  const BenchFlags& flags_;
  BenchReport& report_;
  double solo_ = 0.0;
};

// A broken device or a lack of memory ends the measuring, and not what was measured.
Result<void> measure(const BenchFlags& flags, BenchReport& report) {
  try {
    auto engine = Engine::open(flags.model.model, flags.model.engine_options());
    if (!engine) return engine.error();
    return Bench(std::move(*engine), flags, report).run();
  } catch (const std::exception& fault) {
    return Error{ErrorCode::engine_failed, std::string("the measuring failed: ") + fault.what()};
  }
}

int bench(const BenchFlags& flags) {
  BenchReport report(flags.json);
  const Result<void> measured = measure(flags, report);
  report.end(measured);
  return measured ? kDone : complain(measured.error());
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("bench", "Tokens per second and latency with 1, 2, 4, ... sessions at once");
  auto flags = std::make_shared<BenchFlags>();
  flags->model.add_to(*command);
  command->add_option("--sessions", flags->sessions, "Numbers of sessions, as 1,2,4")
      ->delimiter(',')
      ->allow_extra_args(false)  // the next word may be MODEL
      ->check(CLI::Range(1, 4096));
  command->add_option("--prompt", flags->load.prompt, "Prompt tokens of each session")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--generate", flags->load.generate, "Tokens each session generates")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "A JSON report on stdout (the table then goes to stderr)");
  command->add_flag("--no-table", flags->no_table, "Leave the fused/unfused comparison out");
  command->add_flag("--no-bandwidth", flags->no_bandwidth, "Leave the measurement of the memory's read bandwidth out");
  command->callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

}  // namespace troupe::app
