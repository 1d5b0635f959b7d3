#include <immintrin.h>

#include "apps/kernel_bench/ceiling.h"
#include "apps/kernel_bench/ceiling_loop.h"

namespace troupe::kernel_bench {
namespace {

struct Dpbusd {
  using Register = __m256i;
  static constexpr int kChains = 12;
  static Register zero() { return _mm256_setzero_si256(); }
  static Register ones() { return _mm256_set1_epi8(1); }
  static void step(Register& sum, Register ones) {
    asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(ones));
  }
  static double total(Register sum) { return 8.0 * _mm256_cvtsi256_si32(sum); }
};

}  // namespace

double burst_dpbusd_256(int rounds) {
  return burst<Dpbusd>(rounds);
}

}  // namespace troupe::kernel_bench
