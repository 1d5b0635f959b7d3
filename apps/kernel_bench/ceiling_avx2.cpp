#include <immintrin.h>

#include "apps/kernel_bench/ceiling.h"
#include "apps/kernel_bench/ceiling_loop.h"

namespace troupe::kernel_bench {
namespace {

// The dot product of four bytes without VNNI: vpmaddubsw, vpmaddwd, vpaddd.
struct Maddubs {
  using Register = __m256i;
  static constexpr int kChains = 10;
  static Register zero() { return _mm256_setzero_si256(); }
  static Register ones() { return _mm256_set1_epi8(1); }
  static void step(Register& sum, Register ones) {
    const Register pairs = _mm256_set1_epi16(1);
    Register products;
    asm volatile(
        "vpmaddubsw %2, %2, %1\n"
        "vpmaddwd %3, %1, %1\n"
        "vpaddd %1, %0, %0"
        : "+v"(sum), "=&v"(products)
        : "v"(ones), "v"(pairs));
  }
  static double total(Register sum) { return 8.0 * _mm256_cvtsi256_si32(sum); }
};

struct Fma {
  using Register = __m256;
  static constexpr int kChains = 12;
  static Register zero() { return _mm256_setzero_ps(); }
  static Register ones() { return _mm256_set1_ps(1.0f); }
  static void step(Register& sum, Register ones) { asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(ones)); }
  static double total(Register sum) { return 8.0 * static_cast<double>(_mm256_cvtss_f32(sum)); }
};

}  // namespace

double burst_maddubs_256(int rounds) {
  return burst<Maddubs>(rounds);
}

double burst_fma_256(int rounds) {
  return burst<Fma>(rounds);
}

}  // namespace troupe::kernel_bench
