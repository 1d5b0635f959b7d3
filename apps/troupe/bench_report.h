// What `troupe bench` tells: a table for people, row by row as it is measured, and one JSON report at the end.
//
// A measurement that fails takes nothing back: the rows stand, and the report holds the runs that were done and the
// sentence of the error.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/troupe/bench_intruder.h"
#include "apps/troupe/bench_load.h"
#include "apps/troupe/plain_loop.h"

namespace troupe::app {

// The same load, with its usual company and with troublemakers, in turn.
struct CompanyRuns {
  std::vector<LoadResult> usual, troubled;
};

class BenchReport {
 public:
  // With JSON on stdout the table goes to stderr.
  explicit BenchReport(bool json) : json_(json), table_(json ? stderr : stdout) {}

  void begin(const Engine& engine, const Load& load);
  void run(int sessions, const LoadResult& result, const LoopResult& loop);
  void begin_fused_table();
  void fused_row(int sessions, double unfused, double fused);
  void begin_guess_table(std::int32_t drafts);
  void guess_row(int sessions, const LoadResult& plain, const LoadResult& guessing);
  void begin_intruder_table(std::int32_t tokens);
  void intruder_row(int sessions, std::int32_t tokens, const IntruderResult& result);
  void begin_company_table(const Company& troubled);
  void company_row(const Company& troubled, int sessions, const CompanyRuns& runs);
  void peak_memory(double megabytes);
  // used: GB/s at which one session read weights; 0: not measured.
  void bandwidth(double ceiling, int threads, double used);

  // The end, good or bad: prints the report, if one was asked for.
  void end(const Result<void>& measured);

 private:
  bool json_;
  std::FILE* table_;
  nlohmann::ordered_json report_ = nlohmann::ordered_json::object();
};

}  // namespace troupe::app
