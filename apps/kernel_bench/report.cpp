#include "apps/kernel_bench/report.h"

#include <cstdio>
#include <fstream>

namespace troupe::kernel_bench {
namespace {

using Json = nlohmann::ordered_json;

// "model name" of the first processor.
std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Report::Report(int threads) {
  document_ = {{"machine", machine()},
               {"threads", threads},
               {"ceilings", Json::array()},
               {"bandwidth", Json::array()},
               {"cells", Json::array()}};
  std::printf("%s, %d threads\n", machine().c_str(), threads);
}

void Report::ceiling(const Ceiling& ceiling, const Samples& rates) {
  std::printf("ceiling    %-16s %8.1f GMAC/s a core (median %.1f)\n", ceiling.name, rates.best() / 1e9,
              rates.median() / 1e9);
  document_["ceilings"].push_back({{"instruction", ceiling.name},
                                   {"gmac_per_second", rates.best() / 1e9},
                                   {"median_gmac_per_second", rates.median() / 1e9}});
}

void Report::bandwidth(int threads, const char* pages, double best) {
  std::printf("bandwidth  %-6s pages, %2d threads %6.1f GB/s\n", pages, threads, best);
  document_["bandwidth"].push_back({{"threads", threads}, {"pages", pages}, {"gb_per_second", best}});
}

void Report::cells_begin() {
  std::printf("\n%-7s %-9s %-6s %4s %10s %7s %10s %-16s %10s %6s %9s\n", "mode", "path", "format", "M", "GMAC/s",
              "spread", "best", "ceiling", "GMAC/s", "share", "weights");
}

void Report::cell(const CellName& name, const Ceiling& ceiling, const Cell& cell) {
  const char* mode = name.hot ? "hot" : "memory";
  const std::string format(traits(name.type).name);
  std::printf("%-7s %-9s %-6s %4lld %10.1f %6.1f%% %10.1f %-16s %10.1f %5.1f%% %4.1f GB/s\n", mode,
              troupe::name(name.isa), format.c_str(), static_cast<long long>(name.rows), cell.kernel.median() / 1e9,
              100 * cell.spread(), cell.kernel.best() / 1e9, ceiling.name, cell.ceiling.best() / 1e9,
              100 * cell.share(), cell.weight_rate() / 1e9);
  std::fflush(stdout);
  document_["cells"].push_back({{"mode", mode},
                                {"path", troupe::name(name.isa)},
                                {"format", format},
                                {"rows", name.rows},
                                {"threads", name.threads},
                                {"gmac_per_second", cell.kernel.median() / 1e9},
                                {"spread", cell.spread()},
                                {"best_gmac_per_second", cell.kernel.best() / 1e9},
                                {"ceiling", ceiling.name},
                                {"ceiling_gmac_per_second", cell.ceiling.best() / 1e9},
                                {"share", cell.share()},
                                {"weight_gb_per_second", cell.weight_rate() / 1e9}});
}

bool Report::write(const std::string& path) const {
  std::ofstream file(path);
  file << document_.dump(1) << '\n';
  return static_cast<bool>(file.flush());
}

}  // namespace troupe::kernel_bench
