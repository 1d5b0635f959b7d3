#include <algorithm>
#include <exception>
#include <map>

#include "apps/troupe/bench_intruder.h"
#include "apps/troupe/bench_load.h"
#include "apps/troupe/bench_report.h"
#include "apps/troupe/command.h"
#include "apps/troupe/memory.h"
#include "apps/troupe/options.h"
#include "apps/troupe/plain_loop.h"
#include "runtime/draft_model.h"
#include "runtime/record/record_header.h"

namespace troupe::app {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<int> sessions{1, 2, 4, 8, 16, 32};
  Load load;                  // of each run, but for its sessions
  std::int32_t intruder = 0;  // tokens of a long prompt; 0: none
  int storm = 0;              // sessions whose turns are cancelled; 0: none
  int stalled = 0;            // sessions whose readers stand still; 0: none
  HostFlags host;
  bool json = false;
  bool no_table = false;
  bool no_bandwidth = false;
};

class Bench {
 public:
  // `draft` and `record` may be null.
  Bench(std::shared_ptr<Engine> engine, std::shared_ptr<Engine> draft, std::shared_ptr<RecordWriter> record,
        const BenchFlags& flags, BenchReport& report)
      : engine_(std::move(engine)),
        draft_(std::move(draft)),
        record_(std::move(record)),
        flags_(flags),
        report_(report) {}

  Result<void> run() {
    // All of them, before the first takes its minutes.
    for (int sessions : flags_.sessions) {
      if (auto fits = check(sessions); !fits) return fits;
    }
    report_.begin(*engine_, flags_.load);
    for (int sessions : flags_.sessions) {
      if (auto done = one(sessions); !done) return done;
    }
    if (flags_.intruder > 0) {
      if (auto done = intruder_table(); !done) return done;
    }
    if (auto done = company_tables(); !done) return done;
    if (auto done = guess_table(); !done) return done;
    if (!flags_.no_table) {
      if (auto done = fused_table(); !done) return done;
    }
    report_.peak_memory(peak_resident_megabytes());  // before the bandwidth's own gigabyte
    return flags_.no_bandwidth ? Result<void>() : bandwidth();
  }

 private:
  Load load(int sessions, bool fuse = true) const {
    Load one = flags_.load;
    one.sessions = sessions;
    one.fuse = fuse;
    one.record = record_;
    return one;
  }

  static Error differs() {
    return {ErrorCode::engine_failed, "the sessions' tokens differ from the plain loop's: please report this"};
  }

  Result<void> one(int sessions) {
    const LoopResult loop = run_loop(*engine_, load(sessions));
    auto result = run_load(engine_, load(sessions));
    if (!result) return result.error();
    if (result->answers != loop.answers) return differs();
    answers_[sessions] = loop.answers;
    if (sessions == 1) solo_ = result->tokens_per_second;
    report_.run(sessions, *result, loop);
    return {};
  }

  // What guessing brings, one run beside the other, if any is asked for.
  Result<void> guess_table() {
    const std::int32_t drafts = HostOptions::guesses(flags_.host.drafts, draft_ != nullptr);
    if (drafts == 0) return {};
    report_.begin_guess_table(drafts);
    for (int sessions : flags_.sessions) {
      Load guesses = load(sessions);
      guesses.drafts = drafts;
      guesses.draft = draft_;
      auto plain = run_load(engine_, load(sessions));
      if (!plain) return plain.error();
      auto guessing = run_load(engine_, guesses);
      if (!guessing) return guessing.error();
      if (guessing->answers != answers_[sessions]) return differs();
      report_.guess_row(sessions, *plain, *guessing);
    }
    return {};
  }

  Result<void> intruder_table() {
    report_.begin_intruder_table(flags_.intruder);
    for (int sessions : flags_.sessions) {
      auto result = run_intruder(engine_, load(sessions), flags_.intruder);
      if (!result) return result.error();
      for (auto& answer : result->answers) answer.resize(static_cast<std::size_t>(flags_.load.generate));
      if (result->answers != answers_[sessions]) return differs();
      report_.intruder_row(sessions, flags_.intruder, *result);
    }
    return {};
  }

  Result<void> company_tables() {
    using Kind = Company::Kind;
    if (flags_.storm > 0) {
      auto done = company_table({Kind::short_turns, flags_.storm}, {Kind::cancelled_turns, flags_.storm});
      if (!done) return done;
    }
    return flags_.stalled > 0 ? company_table({}, {Kind::stalled_readers, flags_.stalled}) : Result<void>();
  }

  // What the load notices when one company takes the place of another, in turn, so that what else the machine does
  // meets both.
  Result<void> company_table(const Company& usual, const Company& troubled) {
    report_.begin_company_table(troubled);
    for (int sessions : flags_.sessions) {
      CompanyRuns runs;
      for (int pair = 0; pair < kPairs; ++pair) {
        if (auto done = beside(usual, sessions, runs.usual); !done) return done;
        if (auto done = beside(troubled, sessions, runs.troubled); !done) return done;
      }
      report_.company_row(troubled, sessions, runs);
    }
    return {};
  }

  Result<void> beside(const Company& company, int sessions, std::vector<LoadResult>& runs) {
    Load one = load(sessions);
    one.company = company;
    auto result = run_load(engine_, one);
    if (!result) return result.error();
    if (result->answers != answers_[sessions]) return differs();
    runs.push_back(std::move(*result));
    return {};
  }

  // The most that sessions beside the load's need in one of the runs.
  struct Need {
    std::int64_t tokens = 0, pages = 0;  // of one session; of all
  };
  Need need_beside() const {
    const std::int64_t intruder = flags_.intruder > 0 ? flags_.intruder + 2 : 0;
    const std::int64_t company = std::max(flags_.storm, flags_.stalled);
    return {std::max(intruder, company > 0 ? std::int64_t{Company::kTokens} : 0),
            std::max(pages_for(intruder), company * pages_for(Company::kTokens))};
  }

  Result<void> check(int sessions) const {
    if (flags_.load.shared >= flags_.load.prompt) {
      return Error{ErrorCode::bad_input, "--prefix-share " + std::to_string(flags_.load.shared) +
                                             " leaves no token of a --prompt of " + std::to_string(flags_.load.prompt) +
                                             " to tell the sessions apart"};
    }
    const std::int64_t answer =
        flags_.intruder > 0 ? longest_answer(flags_.load, flags_.intruder) : flags_.load.generate;
    const Need beside = need_beside();
    const std::int64_t tokens = flags_.load.prompt + answer, most = std::max(tokens, beside.tokens);
    if (most > engine_->context()) {
      return Error{ErrorCode::context_length,
                   std::to_string(most) + " tokens a session; the context holds " + std::to_string(engine_->context()) +
                       ": give less with --prompt, --generate or --long-prompt-intruder, or more with --context"};
    }
    const std::int64_t pages = sessions * pages_for(tokens) + beside.pages, there = engine_->pages()->total();
    if (pages <= there) return {};
    const std::string others = beside.pages > 0 ? " and those beside them" : "";
    return Error{ErrorCode::out_of_memory, std::to_string(sessions) + " sessions" + others + " need " +
                                               std::to_string(pages) + " pages of KV memory; there are " +
                                               std::to_string(there) +
                                               ": give more with --kv-memory, or fewer with --sessions" +
                                               (beside.pages > 0 ? ", --cancel-storm or --stalled-readers" : "")};
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

  static constexpr int kPairs = 3;  // of runs, for a median

  std::shared_ptr<Engine> engine_, draft_;
  std::shared_ptr<RecordWriter> record_;
  const BenchFlags& flags_;
  BenchReport& report_;
  double solo_ = 0.0;
  std::map<int, std::vector<std::vector<TokenId>>> answers_;  // of so many sessions, by the plain loop
};

// A broken device or a lack of memory ends the measuring, and not what was measured.
Result<void> measure(const BenchFlags& flags, BenchReport& report) {
  try {
    const EngineOptions options = flags.model.engine_options();
    auto engine = Engine::open(flags.model.model, options);
    if (!engine) return engine.error();
    auto draft = open_draft(**engine, flags.host.draft);
    if (!draft) return draft.error();
    auto record = record_of(**engine, flags.model.model, options, flags.host.record);
    if (!record) return record.error();
    return Bench(std::move(*engine), std::move(*draft), std::move(*record), flags, report).run();
  } catch (const std::exception& fault) {
    return Error{ErrorCode::engine_failed, std::string("the measuring failed: ") + fault.what()};
  }
}

// Turns at-once or poisson:RATE into the rate, 0 for all at once.
std::string read_arrivals(std::string& text) {
  constexpr std::string_view kPoisson = "poisson:";
  if (text == "at-once") {
    text = "0";
    return "";
  }
  double rate = 0.0;
  const bool poisson = text.starts_with(kPoisson) && CLI::detail::lexical_cast(text.substr(kPoisson.size()), rate);
  if (!poisson || !(rate >= 1e-3 && rate <= 1e6)) {
    return "'" + text + "' is neither at-once nor poisson:RATE with a RATE of 0.001 to 1000000 sessions a second";
  }
  text = text.substr(kPoisson.size());
  return "";
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
  flags->host.add_to(*command);
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
  command
      ->add_option("--prefix-share", flags->load.shared,
                   "Tokens with which all prompts begin; they are computed once (less than --prompt)")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--arrivals", flags->load.arrivals_a_second,
                   "When sessions come: at-once, or poisson:RATE (RATE a second, at random)")
      ->transform(CLI::Validator(read_arrivals, "at-once|poisson:RATE"));
  command->add_option("--seed", flags->load.seed, "Of the arrivals: the same seed, the same times")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      ->add_option(
          "--long-prompt-intruder", flags->intruder,
          "Also measure how others wait while a prompt of so many tokens is computed, and how fast it is; 0: no")
      ->check(CLI::Range(0, (1 << 20) - 2));
  command
      ->add_option("--cancel-storm", flags->storm,
                   "Also measure what others notice when so many sessions' turns are cancelled all the time instead of "
                   "ending by themselves; 0: no")
      ->check(CLI::Range(0, 4096));
  command
      ->add_option("--stalled-readers", flags->stalled,
                   "Also measure what others notice of so many sessions whose readers stand still; 0: no")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", flags->json, "A JSON report on stdout (the table then goes to stderr)");
  command->add_flag("--no-table", flags->no_table, "Leave the fused/unfused comparison out");
  command->add_flag("--no-bandwidth", flags->no_bandwidth, "Leave the measurement of the memory's read bandwidth out");
  command->callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

}  // namespace troupe::app
