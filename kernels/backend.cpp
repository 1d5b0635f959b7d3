#include "kernels/backend.h"

#include <algorithm>
#include <cmath>
#include <cpuid.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <system_error>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/tile_registers.h"

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

const cpu::Path& path_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return cpu::avx2_path();
    case Isa::avx_vnni:
      return cpu::avx_vnni_path();
    case Isa::avx512:
      return cpu::avx512_path();
    case Isa::avx512_vnni:
      return cpu::avx512_vnni_path();
    case Isa::amx_int8:
      break;
  }
  return cpu::amx_path();
}

// The rest of the sentence about a path that is not supported here.
std::string why_unsupported(Isa isa) {
  const std::string lacks = "this processor (or its operating system) lacks ";
  switch (isa) {
    case Isa::avx2:
      return lacks + "AVX2, FMA or F16C";
    case Isa::avx_vnni:
      return lacks + "AVX2, FMA, F16C or AVX-VNNI";
    case Isa::avx512:
      return lacks + "AVX-512 F, BW, DQ or VL";
    case Isa::avx512_vnni:
      return lacks + "AVX-512 VNNI";
    case Isa::amx_int8:
      break;
  }
  if (cpu::tile_registers() == cpu::TileRegisters::refused) {
    return "the operating system refuses this process the tile registers (Linux grants them from 5.16 on)";
  }
  return lacks + "AMX int8 tiles or AVX-512 VNNI";
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
    case Isa::avx_vnni:
      return "avx-vnni";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_vnni:
      return "vnni";
    case Isa::amx_int8:
      return "amx";
  }
  return "";
}

// These two are asked of the CPU itself: clang 14's __builtin_cpu_supports does not know f16c, g++ 12's not avxvnni.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx_vnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & 1u << 4) != 0;
}

// __builtin_cpu_supports looks at XCR0 too: a set is there only if the operating system saves its registers.
bool supported(Isa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx_vnni) return avx2 && has_avx_vnni();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == Isa::avx512) return avx512;
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  return isa == Isa::avx512_vnni ? vnni : vnni && cpu::tile_registers() == cpu::TileRegisters::granted;
}

Result<Isa> best_isa() {
  const auto best = std::find_if(std::rbegin(kIsas), std::rend(kIsas), supported);
  if (best != std::rend(kIsas)) return *best;
  return Error{ErrorCode::unsupported,
               "this processor has no AVX2, FMA and F16C; only --isa reference runs here (about 100 times slower)"};
}

std::unique_ptr<Backend> make_cpu_backend(Isa isa, int threads, Numa numa) {
  return std::make_unique<cpu::CpuBackend>(path_of(isa), threads, numa);
}

namespace {

Result<std::unique_ptr<Backend>> start(Isa isa, int threads, Numa numa) {
  try {
    return make_cpu_backend(isa, threads, numa);
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::io, "the system starts no " + std::to_string(threads) + " compute threads (" +
                                    refused.code().message() +
                                    "): give fewer with --threads, or raise its limit (ulimit -u, ulimit -v, a "
                                    "container's limit of processes)"};
  }
}

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(const std::string& isa, int threads, Numa numa) {
  if (threads < 0 || threads > 1024) {
    return Error{ErrorCode::bad_input,
                 "--threads is " + std::to_string(threads) + "; 0 (one a CPU) to 1024 are possible"};
  }
  if (threads == 0) threads = usable_cpus();
  if (isa == "reference") return make_reference_backend();
  if (isa.empty() || isa == "auto") {
    const Result<Isa> best = best_isa();
    if (!best) return best.error();
    return start(*best, threads, numa);
  }
  for (Isa one : kIsas) {
    if (isa != name(one)) continue;
    if (supported(one)) return start(one, threads, numa);
    return Error{ErrorCode::unsupported, "--isa " + isa + ": " + why_unsupported(one)};
  }
  return Error{ErrorCode::bad_input,
               "--isa '" + isa + "' is not known; use auto, reference, avx2, avx-vnni, avx512, vnni or amx"};
}

}  // namespace troupe
