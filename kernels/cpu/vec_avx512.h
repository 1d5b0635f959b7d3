// The 16-lane vector of the AVX-512 paths, with VNNI's 4-way int8 dot product or without. For path_avx512*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace {

template <bool kVnni>
struct Avx512 {
  using F = __m512;   // 16 floats
  using I = __m512i;  // 16 int32
  using B = __m512i;  // 64 bytes: 4 of each lane

  static constexpr int kTiles = 2;  // weight tiles that share each broadcast
  static constexpr int kRows = kVnni ? 8 : 4;
  static constexpr int kDotRows = kVnni ? 6 : 4;  // rows whose dot products stand in registers together
  static constexpr int kQueries = 6;              // query vectors that share a read of K and V: 6 x kDims accumulators
  static constexpr int kDims = 4;                 // vectors of dimensions at once
  static constexpr int kChains = 12;              // score chains at once
  static constexpr bool kUnsigned8 = kVnni;       // 8-bit weights are used as they stand, q + 128

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load_half(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_half(std::byte* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F load_bfloat(const std::byte* p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
  }
  static F load_u8(const std::byte* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F load_i8(const std::byte* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }  // -(a * b) + c, rounded once
  static F rint(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static float max_of(F x) { return _mm512_reduce_max_ps(x); }
  // a where x < limit (x > limit), else b; b where x is NaN.
  static F if_below(F x, float limit, F a, F b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, set1(limit), _CMP_LT_OQ), b, a);
  }
  static F if_above(F x, float limit, F a, F b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, set1(limit), _CMP_GT_OQ), b, a);
  }
  // x in the first `count` lanes, `other` in the rest.
  static F first_lanes(F x, int count, F other) {
    return _mm512_mask_blend_ps(static_cast<__mmask16>((1u << count) - 1u), other, x);
  }

  static I iset1(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I izero() { return _mm512_setzero_si512(); }
  static I iload(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  static I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
  static I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
  template <int kBits>
  static I shl(I x) {
    return _mm512_slli_epi32(x, kBits);
  }
  template <int kBits>
  static I sar(I x) {
    return _mm512_srai_epi32(x, kBits);
  }
  static I to_int(F x) { return _mm512_cvtps_epi32(x); }
  static F bits_as_float(I x) { return _mm512_castsi512_ps(x); }
  static I float_as_bits(F x) { return _mm512_castps_si512(x); }
  static I iand(I a, I b) { return _mm512_and_si512(a, b); }
  static std::uint32_t umax_of(I x) { return _mm512_reduce_max_epu32(x); }
  static I umax(I a, I b) { return _mm512_max_epu32(a, b); }
  static std::int32_t sum_of(I x) { return _mm512_reduce_add_epi32(x); }
  static void istore(std::int32_t* p, I x) { _mm512_storeu_si512(p, x); }
  // Lane i becomes the sum (the maximum) of x[i]'s lanes: a tree that puts two vectors into one at each of its levels.
  template <class Op>
  static I across(const I (&x)[16], Op op) {
    I fours[4];  // of vector 4j .. 4j + 3, a lane of 128 bits has a number each
    for (int j = 0; j < 4; ++j) {
      const I* v = x + 4 * j;
      const I a = op(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
      const I b = op(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
      fours[j] = op(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    const I a = op(_mm512_shuffle_i64x2(fours[0], fours[1], 0x44), _mm512_shuffle_i64x2(fours[0], fours[1], 0xee));
    const I b = op(_mm512_shuffle_i64x2(fours[2], fours[3], 0x44), _mm512_shuffle_i64x2(fours[2], fours[3], 0xee));
    return op(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
  }
  static I umax_across(const I (&x)[16]) {
    return across(x, [](I a, I b) { return umax(a, b); });
  }
  static I sum_across(const I (&x)[16]) {
    return across(x, [](I a, I b) { return iadd(a, b); });
  }
  static void store_i8(std::byte* p, I x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x)); }

  static B bload(const std::byte* p) { return _mm512_loadu_si512(p); }
  static void bstore(std::byte* p, B x) { _mm512_storeu_si512(p, x); }
  static B bsub(B a, B b) { return _mm512_sub_epi8(a, b); }
  static B band(B a, B b) { return _mm512_and_si512(a, b); }
  static B bor(B a, B b) { return _mm512_or_si512(a, b); }
  static B bset1(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  // Shifts whole 16-bit pairs: the caller masks what crosses a byte.
  template <int kBits>
  static B bshift(B x) {  // left for positive kBits
    if constexpr (kBits > 0) return _mm512_slli_epi16(x, kBits);
    if constexpr (kBits < 0) return _mm512_srli_epi16(x, -kBits);
    return x;
  }
  static B four(const std::byte* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
  }
  // acc + sum of the lane's 4 products; w unsigned (below 64 without VNNI), x int8.
  static I dot(I acc, B w, B x) {
    if constexpr (kVnni) {
#ifdef __AVX512VNNI__
      return _mm512_dpbusd_epi32(acc, w, x);
#endif
    }
    return _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
  }
  // The same for 8-bit weights stored as q + 128. Without VNNI: |q| <= 128 and |x| <= 127, two products fit int16.
  static I dot8(I acc, B w, B x) {
    if constexpr (kVnni) return dot(acc, w, x);
    const B q = _mm512_xor_si512(w, bset1(-128));
    const B signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(q), _mm512_setzero_si512(), x);
    return _mm512_add_epi32(
        acc, _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_abs_epi8(q), signed_x), _mm512_set1_epi16(1)));
  }
};

}  // namespace
