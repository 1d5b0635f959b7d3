// The 16-lane vector of the 256-bit paths: two halves of 8, with VNNI's 4-way int8 dot product (AVX-VNNI, which CPUs
// without AVX-512 have) or without. For path_avx2.cpp and path_avx_vnni.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace {

template <bool kVnni>
struct Avx2 {
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  using B = I;

  static constexpr int kTiles = 1;
  static constexpr int kRows = 3;
  static constexpr int kDotRows = 3;  // rows whose dot products stand in registers together
  static constexpr int kQueries = 3;
  static constexpr int kDims = 2;
  static constexpr int kChains = 6;
  static constexpr bool kUnsigned8 = kVnni;  // 8-bit weights are used as they stand, q + 128

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static const __m128i* as128(const std::byte* p) { return reinterpret_cast<const __m128i*>(p); }
  static __m128i half128(const std::byte* p) { return _mm_loadu_si128(as128(p)); }
  static F load_half(const std::byte* p) { return {_mm256_cvtph_ps(half128(p)), _mm256_cvtph_ps(half128(p + 16))}; }
  static void store_half(std::byte* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  }
  static __m256 bfloat8(const std::byte* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half128(p)), 16));
  }
  static F load_bfloat(const std::byte* p) { return {bfloat8(p), bfloat8(p + 16)}; }
  static F to_float(__m256i a, __m256i b) { return {_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)}; }
  static F load_u8(const std::byte* p) {
    const __m128i x = half128(p);
    return to_float(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)));
  }
  // Both halves from memory: a shift between them would be a third use of the one unit that moves bytes.
  static F load_i8(const std::byte* p) {
    return to_float(_mm256_cvtepi8_epi32(_mm_loadl_epi64(as128(p))),
                    _mm256_cvtepi8_epi32(_mm_loadl_epi64(as128(p + 8))));
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  static F fnma(F x, F y, F z) { return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)}; }
  static __m256 rint8(__m256 x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F rint(F x) { return {rint8(x.a), rint8(x.b)}; }
  static float max_of(F x) {
    float lanes[16];
    store(lanes, x);
    float largest = lanes[0];
    for (float lane : lanes) largest = largest > lane ? largest : lane;
    return largest;
  }
  template <int kCompare>
  static F choose(F x, float limit, F yes, F no) {
    const __m256 bound = _mm256_set1_ps(limit);
    return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, bound, kCompare)),
            _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, bound, kCompare))};
  }
  static F if_below(F x, float limit, F yes, F no) { return choose<_CMP_LT_OQ>(x, limit, yes, no); }
  static F if_above(F x, float limit, F yes, F no) { return choose<_CMP_GT_OQ>(x, limit, yes, no); }
  static F first_lanes(F x, int count, F other) {
    const __m256 lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 bound = _mm256_set1_ps(static_cast<float>(count)),
                 high = _mm256_set1_ps(static_cast<float>(count - 8));
    return {_mm256_blendv_ps(other.a, x.a, _mm256_cmp_ps(lane, bound, _CMP_LT_OQ)),
            _mm256_blendv_ps(other.b, x.b, _mm256_cmp_ps(lane, high, _CMP_LT_OQ))};
  }

  static I iset1(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static I izero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static I iload(const std::int32_t* p) { return bload(reinterpret_cast<const std::byte*>(p)); }
  static I iadd(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  static I isub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  template <int kBits>
  static I shl(I x) {
    return {_mm256_slli_epi32(x.a, kBits), _mm256_slli_epi32(x.b, kBits)};
  }
  template <int kBits>
  static I sar(I x) {
    return {_mm256_srai_epi32(x.a, kBits), _mm256_srai_epi32(x.b, kBits)};
  }
  static I to_int(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
  static F bits_as_float(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  static I float_as_bits(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
  static I iand(I x, I y) { return band(x, y); }
  static I umax(I x, I y) { return {_mm256_max_epu32(x.a, y.a), _mm256_max_epu32(x.b, y.b)}; }
  static void istore(std::int32_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
  }
  // Lane i becomes the sum (the maximum) of x[i]'s lanes: a tree that puts two vectors into one at each of its levels.
  template <class Op>
  static I across(const I (&x)[16], Op op) {
    __m256i fours[4];  // of vector 4j .. 4j + 3, a lane of 128 bits has a number each
    for (int j = 0; j < 4; ++j) {
      __m256i v[4];
      for (int i = 0; i < 4; ++i) v[i] = op(x[4 * j + i].a, x[4 * j + i].b);
      const __m256i a = op(_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[0], v[1]));
      const __m256i b = op(_mm256_unpacklo_epi32(v[2], v[3]), _mm256_unpackhi_epi32(v[2], v[3]));
      fours[j] = op(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    }
    const auto halves = [&](__m256i u, __m256i v) {
      return op(_mm256_permute2x128_si256(u, v, 0x20), _mm256_permute2x128_si256(u, v, 0x31));
    };
    return {halves(fours[0], fours[1]), halves(fours[2], fours[3])};
  }
  static I umax_across(const I (&x)[16]) {
    return across(x, [](__m256i a, __m256i b) { return _mm256_max_epu32(a, b); });
  }
  static I sum_across(const I (&x)[16]) {
    return across(x, [](__m256i a, __m256i b) { return _mm256_add_epi32(a, b); });
  }
  static std::uint32_t umax_of(I x) {
    std::int32_t lanes[16];
    istore(lanes, x);
    std::uint32_t largest = 0;
    for (std::int32_t lane : lanes)
      largest = largest > static_cast<std::uint32_t>(lane) ? largest : static_cast<std::uint32_t>(lane);
    return largest;
  }
  static std::int32_t sum_of(I x) {
    std::int32_t lanes[16], sum = 0;
    istore(lanes, x);
    for (std::int32_t lane : lanes) sum += lane;
    return sum;
  }
  // Values of int8's range.
  static void store_i8(std::byte* p, I x) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }

  static B bload(const std::byte* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  static B band(B x, B y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  static B bor(B x, B y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
  static B bset1(int x) { return {_mm256_set1_epi8(static_cast<char>(x)), _mm256_set1_epi8(static_cast<char>(x))}; }
  template <int kBits>
  static B bshift(B x) {
    if constexpr (kBits > 0) return {_mm256_slli_epi16(x.a, kBits), _mm256_slli_epi16(x.b, kBits)};
    if constexpr (kBits < 0) return {_mm256_srli_epi16(x.a, -kBits), _mm256_srli_epi16(x.b, -kBits)};
    return x;
  }
  static B four(const std::byte* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return iset1(word);
  }
  static __m256i dot_half(__m256i acc, __m256i w, __m256i x) {
    if constexpr (kVnni) {
#ifdef __AVXVNNI__
      return _mm256_dpbusd_avx_epi32(acc, w, x);
#endif
    }
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
  }
  // w unsigned; without VNNI below 64, so that two products are at most 2 * 63 * 127, inside int16.
  static I dot(I acc, B w, B x) {
    return {dot_half(acc.a, w.a, x.a), dot_half(acc.b, w.b, x.b)};
  }
  // 8-bit weights stored as q + 128. Without VNNI: |q| <= 128 and |x| <= 127, two products fit int16.
  static __m256i dot8_half(__m256i acc, __m256i w, __m256i x) {
    if constexpr (kVnni) return dot_half(acc, w, x);
    const __m256i q = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return dot_half(acc, _mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
  }
  static I dot8(I acc, B w, B x) {
    return {dot8_half(acc.a, w.a, x.a), dot8_half(acc.b, w.b, x.b)};
  }
};

}  // namespace
