// kernel_bench: what this machine's instructions and memory can do at best, and how near the kernels come.
//
// Exit codes: 0 done, 1 failed (or the gate is not held), 2 wrong use. Results go to stdout, everything else to stderr.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "apps/kernel_bench/bandwidth.h"
#include "apps/kernel_bench/gate.h"
#include "apps/kernel_bench/report.h"

namespace troupe::kernel_bench {
namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

constexpr DType kFormats[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q4_k,
                              DType::q5_k, DType::q6_k, DType::f16,  DType::bf16, DType::f32};

struct Flags {
  std::vector<std::string> formats, paths;
  std::vector<std::int64_t> rows{1, 2, 4, 8, 16, 32, 128, 512};
  int threads = 0;
  bool hot = false, memory = false, quick = false, gate = false;
  std::string json;
};

// What flags become: every list whole, and how much time and memory a measurement may take.
struct Plan {
  std::vector<DType> formats;
  std::vector<Isa> paths;
  std::vector<std::int64_t> rows;
  int threads = 1;
  std::vector<bool> hot;
  double cell_seconds = 0;
  int ceiling_samples = 0, passes = 0;
  std::size_t lane_bytes = 0, ring_bytes = 0;  // well past any last-level cache that one process gets
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (DType type : kFormats) names.emplace_back(traits(type).name);
  return names;
}

std::vector<std::string> path_names() {
  std::vector<std::string> names;
  for (Isa isa : kIsas) {
    if (supported(isa)) names.emplace_back(name(isa));
  }
  return names;
}

bool wanted(const std::vector<std::string>& list, std::string_view one) {
  return list.empty() || std::ranges::find(list, one) != list.end();
}

Plan plan_of(const Flags& flags) {
  Plan plan;
  std::ranges::copy_if(kFormats, std::back_inserter(plan.formats),
                       [&](DType type) { return wanted(flags.formats, traits(type).name); });
  std::ranges::copy_if(kIsas, std::back_inserter(plan.paths),
                       [&](Isa isa) { return supported(isa) && wanted(flags.paths, name(isa)); });
  plan.rows = flags.rows;
  plan.threads = flags.threads > 0 ? flags.threads : usable_cpus();
  if (flags.hot || !flags.memory) plan.hot.push_back(true);
  if (flags.memory || !flags.hot) plan.hot.push_back(false);
  plan.cell_seconds = flags.quick ? 0.03 : 0.4;
  plan.ceiling_samples = flags.quick ? 50 : 500;
  plan.passes = flags.quick ? 3 : 9;
  plan.lane_bytes = std::size_t{flags.quick ? 256u : 1024u} << 20;
  plan.ring_bytes = std::size_t{flags.quick ? 128u : 384u} << 20;
  return plan;
}

// All in turns, so that none has the quiet seconds for itself.
void measure_ceilings(const Plan& plan, Report& report) {
  std::vector<Ceiling> ceilings;
  std::ranges::copy_if(all_ceilings(), std::back_inserter(ceilings),
                       [](const Ceiling& one) { return one.supported(); });
  std::vector<Samples> rates(ceilings.size());
  for (int turn = 0; turn < plan.ceiling_samples; ++turn) {
    for (std::size_t i = 0; i < ceilings.size(); ++i) rates[i].add(sample_rate(ceilings[i]));
  }
  for (std::size_t i = 0; i < ceilings.size(); ++i) report.ceiling(ceilings[i], rates[i]);
}

void measure_bandwidth(const Plan& plan, Report& report) {
  const ReadLane small(plan.lane_bytes, Pages::small), huge(plan.lane_bytes, Pages::huge);
  std::vector<int> counts{1};
  if (plan.threads > 1) counts.push_back(plan.threads);
  for (int threads : counts) {
    Samples of_small, of_huge;
    for (int pass = 0; pass < plan.passes; ++pass) {
      of_small.add(small.sample(threads));
      of_huge.add(huge.sample(threads));
    }
    report.bandwidth(threads, "4 KiB", of_small.best());
    report.bandwidth(threads, "2 MiB", of_huge.best());
  }
}

void measure_format(const Plan& plan, Isa isa, DType type, bool hot, Report& report) {
  const std::int64_t most_rows = *std::ranges::max_element(plan.rows);
  const int threads = hot ? 1 : plan.threads;
  const auto backend = trial_backend(isa, threads, most_rows);
  MatmulTrial trial(*backend, type, hot ? hot_shape(type) : memory_shape(type, plan.ring_bytes), most_rows);
  const Ceiling& ceiling = traits(type).block > 1 ? dot_ceiling(isa) : fma_ceiling(isa);
  for (std::int64_t rows : plan.rows) {
    const CellPlan cell{rows, threads, hot ? Clock::thread : Clock::wall, plan.cell_seconds};
    report.cell({hot, isa, type, rows, threads}, ceiling, measure(trial, ceiling, cell));
  }
}

int measure_all(const Flags& flags) {
  const Plan plan = plan_of(flags);
  Report report(plan.threads);
  measure_ceilings(plan, report);
  if (flags.memory || !flags.hot) measure_bandwidth(plan, report);
  report.cells_begin();
  for (bool hot : plan.hot) {
    for (Isa isa : plan.paths) {
      for (DType type : plan.formats) measure_format(plan, isa, type, hot, report);
    }
  }
  if (flags.json.empty() || report.write(flags.json)) return kDone;
  std::fprintf(stderr, "kernel_bench: %s: cannot write\n", flags.json.c_str());
  return kFailed;
}

void add_flags(CLI::App& program, Flags& flags) {
  program.add_option("--formats", flags.formats, "Tensor formats, as Q4_0,Q8_0; all without")
      ->delimiter(',')
      ->check(CLI::IsMember(format_names()));
  program.add_option("--isa", flags.paths, "Instruction sets, as avx2,vnni; all that run here without")
      ->delimiter(',')
      ->check(CLI::IsMember(path_names()));
  program.add_option("--rows", flags.rows, "Rows of a launch (M), as 1,8,32")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  program.add_option("--threads", flags.threads, "Threads with weights from memory; 0: one a CPU this process may use")
      ->check(CLI::Range(0, 1024));
  program.add_flag("--hot", flags.hot, "Only weights that stay in a core's cache, one thread");
  program.add_flag("--memory", flags.memory, "Only weights streamed from memory, all threads");
  program.add_flag("--quick", flags.quick, "A tenth of the time, and figures to match");
  program.add_flag("--gate", flags.gate, "Only hold the Q4_0 kernel against its ceiling; 1 when it is too far below");
  program.add_option("--json", flags.json, "Write everything to this file as JSON");
}

int parse_and_run(int argc, char** argv) {
  CLI::App program("kernel_bench: the machine's ceilings, and each kernel's share of them");
  Flags flags;
  add_flags(program, flags);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help
    return program.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "kernel_bench: %s\nRun kernel_bench --help.\n", error.what());
    return kWrongUse;
  }
  if (flags.gate) return run_gate() ? kDone : kFailed;
  return measure_all(flags);
}

}  // namespace
}  // namespace troupe::kernel_bench

int main(int argc, char** argv) {
  try {
    return troupe::kernel_bench::parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_bench: a fault of its own: %s\n", error.what());
    return 1;
  }
}
