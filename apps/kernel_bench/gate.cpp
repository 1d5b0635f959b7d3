#include "apps/kernel_bench/gate.h"

#include <array>
#include <cstdio>
#include <functional>
#include <optional>

#include "apps/kernel_bench/cell.h"

namespace troupe::kernel_bench {
namespace {

constexpr std::array<std::int64_t, 5> kCeilingRows{8, 12, 16, 24, 32};
constexpr std::array<std::int64_t, 2> kAmxRows{16, 32};
constexpr std::int64_t kMostRows = 32;
constexpr DType kFormat = DType::q4_0;

constexpr int kTurns = 100;   // of about half a millisecond each
constexpr int kAttempts = 6;  // while the ratio is below the failing limit

using Sampler = std::function<double()>;

// Best by best. The samples of all attempts count: the more there are, the nearer both come to what the machine can do.
double ratio_in_turns(const Sampler& contender, const Sampler& yardstick, const GateLimits& limits) {
  Samples ours, theirs;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (int turn = 0; turn < kTurns; ++turn) {
      theirs.add(yardstick());
      ours.add(contender());
    }
    if (judge(ours.best() / theirs.best(), limits) != Verdict::failed) break;
  }
  return ours.best() / theirs.best();
}

bool report(const char* what, std::int64_t rows, double ratio, const GateLimits& limits) {
  const Verdict verdict = judge(ratio, limits);
  std::printf("kernel gate: %s, M = %lld: %.3f\n", what, static_cast<long long>(rows), ratio);
  if (verdict == Verdict::warned) {
    std::fprintf(stderr, "kernel gate: warning: below %.2f\n", limits.warn_below);
  }
  if (verdict == Verdict::failed) std::fprintf(stderr, "kernel gate: failed: below %.2f\n", limits.fail_below);
  return verdict != Verdict::failed;
}

// A path's Q4_0 matmul, hot on one core.
struct Contender {
  explicit Contender(Isa isa)
      : backend(trial_backend(isa, 1, kMostRows)), trial(*backend, kFormat, hot_shape(kFormat), kMostRows) {}
  std::unique_ptr<Backend> backend;
  MatmulTrial trial;
};

bool check_ceiling(Isa isa) {
  Contender kernel(isa);
  const Ceiling& ceiling = dot_ceiling(isa);
  const std::string what = std::string("Q4_0 on ") + name(isa) + " by " + ceiling.name;
  bool passed = true;
  for (std::int64_t rows : kCeilingRows) {
    TrialSampler sampler(kernel.trial, rows, Clock::thread);
    const double ratio =
        ratio_in_turns([&] { return sampler.sample(); }, [&] { return sample_rate(ceiling); }, kCeilingLimits);
    passed = report(what.c_str(), rows, ratio, kCeilingLimits) && passed;
  }
  return passed;
}

bool check_amx(Isa amx, Isa vnni) {
  Contender ours(amx), theirs(vnni);
  const std::string what = std::string("Q4_0 on ") + name(amx) + " by Q4_0 on " + name(vnni);
  bool passed = true;
  for (std::int64_t rows : kAmxRows) {
    TrialSampler contender(ours.trial, rows, Clock::thread), yardstick(theirs.trial, rows, Clock::thread);
    const double ratio =
        ratio_in_turns([&] { return contender.sample(); }, [&] { return yardstick.sample(); }, kAmxLimits);
    passed = report(what.c_str(), rows, ratio, kAmxLimits) && passed;
  }
  return passed;
}

std::optional<Isa> strongest_vnni() {
  for (Isa isa : {Isa::avx512_vnni, Isa::avx_vnni}) {
    if (supported(isa)) return isa;
  }
  return std::nullopt;
}

}  // namespace

Verdict judge(double ratio, const GateLimits& limits) {
  if (!(ratio >= limits.fail_below)) return Verdict::failed;  // NaN fails
  return ratio < limits.warn_below ? Verdict::warned : Verdict::passed;
}

bool run_gate() {
  const std::optional<Isa> vnni = strongest_vnni();
  if (!vnni) {
    std::printf("kernel gate: this processor has no VNNI, so there is nothing to hold\n");
    return true;
  }
  const bool passed = check_ceiling(*vnni);
  if (supported(Isa::amx_int8)) return check_amx(Isa::amx_int8, *vnni) && passed;
  std::printf("kernel gate: this processor has no AMX path to hold\n");
  return passed;
}

}  // namespace troupe::kernel_bench
