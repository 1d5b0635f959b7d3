#include "kernels/backend.h"

#include <algorithm>
#include <cmath>
#include <cpuid.h>
#include <fstream>
#include <sched.h>

#include "kernels/cpu/cpu_backend.h"

namespace troupe {
namespace {

// CPUs that the cgroup's quota allows, rounded up; 0: no quota. (cgroup v2 cpu.max, v1 cpu.cfs_*_us.)
int quota_cpus() {
  double quota = 0.0, period = 0.0;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> quota >> period && period > 0.0) return static_cast<int>(std::ceil(quota / period));
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0.0 && period > 0.0) {
    return static_cast<int>(std::ceil(quota / period));
  }
  return 0;
}

Error unsupported(const std::string& isa, const char* wanted) {
  return {ErrorCode::unsupported, "--isa " + isa + ": this processor (or its operating system) lacks " + wanted};
}

}  // namespace

int usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int in_mask = ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const int quota = quota_cpus();
  return std::max(1, quota > 0 ? std::min(quota, in_mask) : in_mask);
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_vnni:
      return "vnni";
  }
  return "";
}

// Asked of the CPU itself: clang 14's __builtin_cpu_supports does not know the name.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports looks at XCR0 too: a set is there only if the operating system saves its registers.
bool supported(Isa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (isa == Isa::avx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return isa == Isa::avx512 ? avx512 : avx512 && __builtin_cpu_supports("avx512vnni");
}

Result<Isa> best_isa() {
  for (Isa isa : {Isa::avx512_vnni, Isa::avx512, Isa::avx2}) {
    if (supported(isa)) return isa;
  }
  return Error{ErrorCode::unsupported,
               "this processor has no AVX2, FMA and F16C; only --isa reference runs here (about 100 times slower)"};
}

std::unique_ptr<Backend> make_cpu_backend(Isa isa, int threads) {
  const cpu::Path& path = isa == Isa::avx2     ? cpu::avx2_path()
                          : isa == Isa::avx512 ? cpu::avx512_path()
                                               : cpu::avx512_vnni_path();
  return std::make_unique<cpu::CpuBackend>(path, threads);
}

Result<std::unique_ptr<Backend>> make_backend(const std::string& isa, int threads) {
  if (threads < 0 || threads > 1024) {
    return Error{ErrorCode::bad_input,
                 "--threads is " + std::to_string(threads) + "; 0 (one a CPU) to 1024 are possible"};
  }
  if (threads == 0) threads = usable_cpus();
  if (isa == "reference") return make_reference_backend();
  if (isa.empty() || isa == "auto") {
    const Result<Isa> best = best_isa();
    if (!best) return best.error();
    return make_cpu_backend(*best, threads);
  }
  for (Isa one : {Isa::avx2, Isa::avx512, Isa::avx512_vnni}) {
    if (isa != name(one)) continue;
    if (supported(one)) return make_cpu_backend(one, threads);
    return unsupported(isa, one == Isa::avx2     ? "AVX2, FMA or F16C"
                            : one == Isa::avx512 ? "AVX-512 F, BW, DQ or VL"
                                                 : "AVX-512 VNNI");
  }
  return Error{ErrorCode::bad_input, "--isa '" + isa + "' is not known; use auto, reference, avx2, avx512 or vnni"};
}

}  // namespace troupe
