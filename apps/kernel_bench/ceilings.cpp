#include <algorithm>
#include <array>
#include <barrier>
#include <numeric>
#include <thread>
#include <vector>

#include "apps/kernel_bench/ceiling.h"
#include "apps/kernel_bench/samples.h"

namespace troupe::kernel_bench {
namespace {

constexpr int kRounds = 200;

bool has_avx2() {
  return supported(Isa::avx2);
}
bool has_avx512() {
  return supported(Isa::avx512);
}
bool has_avx512_vnni() {
  return supported(Isa::avx512_vnni);
}
bool has_avx_vnni() {
  return supported(Isa::avx_vnni);
}
bool has_amx() {
  return supported(Isa::amx_int8);
}

enum Place { maddubs_256, dpbusd_256, maddubs_512, dpbusd_512, tdpbssd, fma_256, fma_512 };

constexpr std::array kCeilings = {
    Ceiling{"vpmaddubsw 256", has_avx2, burst_maddubs_256},
    Ceiling{"vpdpbusd 256", has_avx_vnni, burst_dpbusd_256},
    Ceiling{"vpmaddubsw 512", has_avx512, burst_maddubs_512},
    Ceiling{"vpdpbusd 512", has_avx512_vnni, burst_dpbusd_512},
    Ceiling{"tdpbssd", has_amx, burst_tdpbssd},
    Ceiling{"vfmadd 256", has_avx2, burst_fma_256},
    Ceiling{"vfmadd 512", has_avx512, burst_fma_512},
};

struct PathCeilings {
  Place dot, fma;
};

PathCeilings ceilings_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return {maddubs_256, fma_256};
    case Isa::avx_vnni:
      return {dpbusd_256, fma_256};
    case Isa::avx512:
      return {maddubs_512, fma_512};
    case Isa::avx512_vnni:
      return {dpbusd_512, fma_512};
    case Isa::amx_int8:
      break;
  }
  return {tdpbssd, fma_512};
}

}  // namespace

std::span<const Ceiling> all_ceilings() {
  return kCeilings;
}

const Ceiling& dot_ceiling(Isa isa) {
  return kCeilings[ceilings_of(isa).dot];
}

const Ceiling& fma_ceiling(Isa isa) {
  return kCeilings[ceilings_of(isa).fma];
}

double sample_rate(const Ceiling& ceiling) {
  const double began = thread_seconds();
  const double done = ceiling.burst(kRounds);
  return done / (thread_seconds() - began);
}

double sample_rate(const Ceiling& ceiling, int threads) {
  if (threads == 1) return sample_rate(ceiling);
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  {
    std::vector<std::jthread> workers;
    workers.reserve(rates.size());
    for (double& rate : rates) {
      workers.emplace_back([&] {
        start.arrive_and_wait();
        rate = sample_rate(ceiling);
      });
    }
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace troupe::kernel_bench
