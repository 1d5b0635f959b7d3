#include "apps/troupe/bench_report.h"

#include <algorithm>

namespace troupe::app {
namespace {

using Json = nlohmann::ordered_json;

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

bool cancels(const Company& company) {
  return company.kind == Company::Kind::cancelled_turns;
}

// Of several runs of one load.
struct Several {
  explicit Several(const std::vector<LoadResult>& runs) {
    for (const LoadResult& run : runs) {
      rates.push_back(run.tokens_per_second);
      gap_ms.insert(gap_ms.end(), run.gap_ms.begin(), run.gap_ms.end());
      seconds += run.company.seconds;
      turns += run.company.turns;
      cancels += run.company.cancels;
      rows += run.launches.rows;
      launches += run.launches.launches;
    }
  }
  double rate() const { return quantile(rates, 0.5); }
  double rows_a_launch() const {
    return static_cast<double>(rows) / static_cast<double>(std::max<std::uint64_t>(launches, 1));
  }
  double a_second(std::int64_t count) const { return seconds > 0 ? static_cast<double>(count) / seconds : 0.0; }

  std::vector<double> rates, gap_ms;
  double seconds = 0;
  std::int64_t turns = 0, cancels = 0;
  std::uint64_t rows = 0, launches = 0;
};

}  // namespace

void BenchReport::begin(const Engine& engine, const Load& load) {
  std::fprintf(stderr, "%s\n", engine.describe().c_str());
  report_ = Json{{"model", engine.shape().name},
                 {"engine", engine.describe()},
                 {"prompt", load.prompt},
                 {"generate", load.generate},
                 {"prefix_share", load.shared},
                 {"arrivals_per_second", load.arrivals_a_second},
                 {"seed", load.seed},
                 {"runs", Json::array()}};
  std::fprintf(table_, "%8s %10s %10s %9s %9s %9s %9s %9s %7s %12s\n", "sessions", "tokens/s", "each", "ttft p50",
               "ttft p99", "ttft max", "gap p50", "gap p99", "width", "actors us");
  std::fflush(table_);
}

void BenchReport::run(int sessions, const LoadResult& result, const LoopResult& loop) {
  const double each = result.tokens_per_second / sessions;
  const double ttft = quantile(result.first_token_ms, 0.5), ttft_max = quantile(result.first_token_ms, 1.0);
  const double ttft_p99 = quantile(result.first_token_ms, 0.99);
  const double gap = quantile(result.gap_ms, 0.5), gap_p99 = quantile(result.gap_ms, 0.99);
  // Median against median: a mean would mostly tell what else the machine was doing.
  const double actors_us = 1e3 * gap - 1e6 * loop.seconds_a_launch;
  std::fprintf(table_, "%8d %10.1f %10.1f %7.0fms %7.0fms %7.0fms %7.1fms %7.1fms %7.2f %+10.0fus\n", sessions,
               result.tokens_per_second, each, ttft, ttft_p99, ttft_max, gap, gap_p99, result.mean_width, actors_us);
  std::fflush(table_);
  report_["runs"].push_back({{"sessions", sessions},
                             {"tokens_per_second", result.tokens_per_second},
                             {"tokens_per_second_each", each},
                             {"first_token_ms_p50", ttft},
                             {"first_token_ms_p99", ttft_p99},
                             {"first_token_ms_max", ttft_max},
                             {"prompt_tokens_found", result.cached_tokens},
                             {"gap_ms_p50", gap},
                             {"gap_ms_p99", gap_p99},
                             {"mean_launch_width", result.mean_width},
                             {"launch_width_histogram", result.launches.by_decode_width},
                             {"launches", result.launches.launches},
                             {"loop_tokens_per_second", loop.tokens_per_second},
                             {"prefill_tokens_per_second", loop.prefill_tokens_per_second},
                             {"actor_microseconds_a_launch", actors_us}});
}

void BenchReport::begin_fused_table() {
  std::fprintf(table_, "\n%-22s %12s %12s\n", "tokens/s in all", "unfused", "fused");
}

void BenchReport::fused_row(int sessions, double unfused, double fused) {
  std::fprintf(table_, "concurrency %-10d %12.1f %12.1f\n", sessions, unfused, fused);
  std::fflush(table_);
  Json& cells = report_["fused_table"];
  cells.push_back({{"sessions", sessions}, {"fused", false}, {"tokens_per_second", unfused}});
  cells.push_back({{"sessions", sessions}, {"fused", true}, {"tokens_per_second", fused}});
}

void BenchReport::begin_guess_table(std::int32_t drafts) {
  std::fprintf(table_, "\nwith at most %d guesses a step\n%8s %12s %12s %7s %14s %7s %9s\n", drafts, "sessions",
               "tokens/s", "guessing", "ratio", "guesses/token", "right", "drafting");
}

void BenchReport::guess_row(int sessions, const LoadResult& plain, const LoadResult& guessing) {
  double tokens = 0.0;
  for (const auto& answer : guessing.answers) tokens += static_cast<double>(answer.size());
  const auto guesses = static_cast<double>(guessing.launches.drafts);
  const double right = static_cast<double>(guessing.launches.right_drafts) / std::max(guesses, 1.0);
  const double ratio = guessing.tokens_per_second / plain.tokens_per_second;
  const double drafting = guessing.launches.drafting / (guessing.launches.busy + guessing.launches.drafting);
  std::fprintf(table_, "%8d %12.1f %12.1f %7.2f %14.2f %5.0f %% %7.0f %%\n", sessions, plain.tokens_per_second,
               guessing.tokens_per_second, ratio, guesses / tokens, 100 * right, 100 * drafting);
  std::fflush(table_);
  report_["guess_table"].push_back({{"sessions", sessions},
                                    {"tokens_per_second", plain.tokens_per_second},
                                    {"tokens_per_second_guessing", guessing.tokens_per_second},
                                    {"ratio", ratio},
                                    {"guesses_a_token", guesses / tokens},
                                    {"right_share", right},
                                    {"drafting_share", drafting}});
}

void BenchReport::begin_intruder_table(std::int32_t tokens) {
  std::fprintf(table_, "\nbeside a prompt of %d tokens\n%8s %9s %9s %9s %9s %9s %9s %9s\n", tokens, "sessions", "ttft",
               "ttft alone", "rate", "usual p50", "usual p99", "gap p50", "gap p99");
}

void BenchReport::intruder_row(int sessions, std::int32_t tokens, const IntruderResult& result) {
  const double rate = result.alone_ms / result.first_token_ms;
  const double usual = quantile(result.usual_gap_ms, 0.5), usual_p99 = quantile(result.usual_gap_ms, 0.99);
  const double gap = quantile(result.gap_ms, 0.5), gap_p99 = quantile(result.gap_ms, 0.99);
  std::fprintf(table_, "%8d %7.0fms %8.0fms %7.0f %% %7.1fms %7.1fms %7.1fms %7.1fms\n", sessions,
               result.first_token_ms, result.alone_ms, 100 * rate, usual, usual_p99, gap, gap_p99);
  std::fflush(table_);
  report_["intruder"].push_back({{"sessions", sessions},
                                 {"prompt", tokens},
                                 {"first_token_ms", result.first_token_ms},
                                 {"first_token_ms_alone", result.alone_ms},
                                 {"rate_to_alone", rate},
                                 {"gap_ms_before_p50", usual},
                                 {"gap_ms_before_p99", usual_p99},
                                 {"gaps", result.gap_ms.size()},
                                 {"gap_ms_p50", gap},
                                 {"gap_ms_p99", gap_p99}});
}

void BenchReport::begin_company_table(const Company& troubled) {
  std::fprintf(table_,
               cancels(troubled) ? "\nbeside %d sessions whose turns are cancelled\n"
                                 : "\nbeside %d sessions whose readers stand still\n",
               troubled.sessions);
  std::fprintf(table_, "%8s %10s %10s %7s %13s %9s %9s %9s %9s", "sessions", "usual", "tokens/s", "ratio",
               "of the runs", "usual p50", "usual p99", "gap p50", "gap p99");
  std::fputs(cancels(troubled) ? "   cancels  a second\n" : "\n", table_);
}

void BenchReport::company_row(const Company& troubled, int sessions, const CompanyRuns& runs) {
  const Several usual(runs.usual), beside(runs.troubled);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < usual.rates.size(); ++i) {
    ratios.push_back(usual.rates[i] > 0 ? beside.rates[i] / usual.rates[i] : 0.0);
  }
  const double ratio = quantile(ratios, 0.5), lowest = quantile(ratios, 0.0), highest = quantile(ratios, 1.0);
  const double usual_p50 = quantile(usual.gap_ms, 0.5), usual_p99 = quantile(usual.gap_ms, 0.99);
  const double p50 = quantile(beside.gap_ms, 0.5), p99 = quantile(beside.gap_ms, 0.99);
  std::fprintf(table_, "%8d %10.1f %10.1f %7.3f %6.3f-%6.3f %7.1fms %7.1fms %7.1fms %7.1fms", sessions, usual.rate(),
               beside.rate(), ratio, lowest, highest, usual_p50, usual_p99, p50, p99);
  Json row{{"sessions", sessions},
           {"beside", troubled.sessions},
           {"tokens_per_second_usual", usual.rate()},
           {"tokens_per_second", beside.rate()},
           {"ratio", ratio},
           {"ratio_lowest", lowest},
           {"ratio_highest", highest},
           {"gap_ms_usual_p50", usual_p50},
           {"gap_ms_usual_p99", usual_p99},
           {"gap_ms_p50", p50},
           {"gap_ms_p99", p99},
           {"rows_a_launch_usual", usual.rows_a_launch()},
           {"rows_a_launch", beside.rows_a_launch()}};
  if (cancels(troubled)) {
    std::fprintf(table_, " %9lld %9.1f", static_cast<long long>(beside.cancels), beside.a_second(beside.cancels));
    row["turns_a_second_usual"] = usual.a_second(usual.turns);
    row["turns_a_second"] = beside.a_second(beside.turns);
    row["cancels"] = beside.cancels;
    row["cancels_a_second"] = beside.a_second(beside.cancels);
  } else {
    row["parked"] = runs.troubled.back().company.parked;
  }
  std::fputc('\n', table_);
  std::fflush(table_);
  report_[cancels(troubled) ? "cancel_storm" : "stalled_readers"].push_back(std::move(row));
}

void BenchReport::peak_memory(double megabytes) {
  std::fprintf(table_, "\npeak memory %.0f MB\n", megabytes);
  std::fflush(table_);
  report_["peak_megabytes"] = megabytes;
}

void BenchReport::bandwidth(double ceiling, int threads, double used) {
  std::fprintf(table_, "read bandwidth %.1f GB/s with %d threads", ceiling, threads);
  if (used > 0) {
    std::fprintf(table_, "; one session reads weights at %.1f GB/s, %.0f %% of it", used, 100 * used / ceiling);
    report_["one_session_share_of_bandwidth"] = used / ceiling;
  }
  std::fputc('\n', table_);
  report_["read_bandwidth_gb_per_second"] = ceiling;
}

void BenchReport::end(const Result<void>& measured) {
  if (!json_) return;
  if (!measured) report_["error"] = measured.error().message;
  // A model's name may be any bytes.
  std::printf("%s\n", report_.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace troupe::app
