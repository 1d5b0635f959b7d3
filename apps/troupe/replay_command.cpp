// troupe replay: a recorded run once more, launch by launch, compared with what the record says.
#include <cstdio>

#include "apps/troupe/command.h"
#include "apps/troupe/options.h"
#include "runtime/record/record_header.h"
#include "runtime/record/replay.h"

namespace troupe::app {
namespace {

struct ReplayFlags {
  ModelFlags machine;  // the model is the record's, unless --model says otherwise
  std::string file;
  int times = 1;
};

unsigned long long number(std::uint64_t value) {
  return value;
}

void print(const ReplayReport& report) {
  std::printf("launches %llu, equal %llu; answers %llu, equal %llu; tokens %llu\n", number(report.launches),
              number(report.equal_launches), number(report.answers), number(report.equal_answers),
              number(report.tokens));
  if (!report.all_equal()) std::printf("first difference: %s\n", report.first_difference.c_str());
}

// What was taken from the record as it is, and where it ends: for a person.
void explain(const ReplayReport& report) {
  if (report.outside > 0) {
    std::fprintf(stderr,
                 "%llu answers more came from a logits processor, which no record can hold: taken as they are\n",
                 number(report.outside));
  }
  if (report.faults > 0) {
    std::fprintf(stderr, "%llu times the engine threw: given as recorded, not computed\n", number(report.faults));
  }
  if (report.unfinished > 0) {
    std::fprintf(stderr, "%llu launches have no end in the record: they ended their batcher, or the program\n",
                 number(report.unfinished));
  }
  if (report.torn) {
    std::fprintf(stderr,
                 "the record ends in the middle, as one whose program was killed or whose disk was full does\n");
  }
}

EngineOptions machine_options(const ReplayFlags& flags, EngineOptions recorded) {
  const EngineOptions given = flags.machine.engine_options();
  recorded.isa = given.isa;
  recorded.threads = given.threads;
  recorded.numa = given.numa;
  recorded.progress = given.progress;
  if (given.kv_memory > 0) recorded.kv_memory = given.kv_memory;
  return recorded;
}

Result<std::unique_ptr<Engine>> open_engine(const ReplayFlags& flags) {
  auto record = RecordReader::open(flags.file);
  if (!record) return record.error();
  auto options = replay_options(record->header());
  if (!options) return options.error();
  const std::string& model = flags.machine.model.empty() ? record->header().model : flags.machine.model;
  return Engine::open(model, machine_options(flags, std::move(*options)));
}

int run_replay(const ReplayFlags& flags) {
  auto engine = open_engine(flags);
  if (!engine) return complain(engine.error());
  bool equal = true;
  for (int i = 0; i < flags.times; ++i) {
    auto record = RecordReader::open(flags.file);
    if (!record) return complain(record.error());
    auto report = replay(*record, **engine);
    if (!report) return complain(report.error());
    print(*report);
    if (i == 0) explain(*report);
    equal = equal && report->all_equal();
  }
  return equal ? kDone : kFailed;
}

}  // namespace

void add_replay(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand(
      "replay", "Compute what --record kept once more, and compare batches and tokens, bit by bit");
  auto flags = std::make_shared<ReplayFlags>();
  command->add_option("FILE", flags->file, "A record")->required()->check(named());
  command->add_option("--model", flags->machine.model, "The model that ran; without it, where the record says it was")
      ->check(named());
  command->add_option("--times", flags->times, "So many times")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  flags->machine.add_machine(*command);
  command->get_option("--kv-memory")->description("Megabytes for keys and values; 0: as many as there were");
  command->callback([flags, &action] { action = [flags] { return run_replay(*flags); }; });
}

}  // namespace troupe::app
