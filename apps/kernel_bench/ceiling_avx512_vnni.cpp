#include <immintrin.h>

#include "apps/kernel_bench/ceiling.h"
#include "apps/kernel_bench/ceiling_loop.h"

namespace troupe::kernel_bench {
namespace {

struct Dpbusd {
  using Register = __m512i;
  static constexpr int kChains = 16;
  static Register zero() { return _mm512_setzero_si512(); }
  static Register ones() { return _mm512_set1_epi8(1); }
  static void step(Register& sum, Register ones) { asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(ones)); }
  static double total(Register sum) { return 16.0 * _mm512_cvtsi512_si32(sum); }
};

}  // namespace

double burst_dpbusd_512(int rounds) {
  return burst<Dpbusd>(rounds);
}

}  // namespace troupe::kernel_bench
