// The list of tensor formats. A new one is a file beside this one, an entry in DType, and one line here.
//
// A format F has kTraits, pack(values, block), finite(block), and either value(block) (the unquantized ones) or
//   terms(block, q, dw, mw): the integers q[block] with the format's offset inside, and per kTermInputs inputs the
//   float32 scale dw and, if kHasMinimum, the minimum mw. The file's value of element i is
//     w = dw[g] * q[i]              product rounded once, then, with a minimum,
//     w = dw[g] * q[i] + mw[g]      sum rounded; no fma.
// (docs/numerics.md, "Formats".)
#pragma once

#include <concepts>
#include <tuple>
#include <utility>

#include "kernels/check.h"
#include "kernels/quant/floats.h"
#include "kernels/quant/q45_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q5.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/result.h"

namespace troupe::quant {

using Formats = std::tuple<F32, F16, Bf16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K>;

template <class F>
concept Quantized = requires {
  F::kTermInputs;
};

// Calls f with a value of the format that has `type`: entry number `type` of the list.
template <std::size_t Index = 0, class Function>
decltype(auto) visit_format(DType type, Function&& f) {
  using Format = std::tuple_element_t<Index, Formats>;
  static_assert(Format::kTraits.type == static_cast<DType>(Index), "Formats and DType have one order");
  if constexpr (Index + 1 < std::tuple_size_v<Formats>) {
    if (type != Format::kTraits.type) return visit_format<Index + 1>(type, std::forward<Function>(f));
  }
  TROUPE_CHECK(type == Format::kTraits.type);
  return f(Format{});
}

// Exact values of one block.
template <class F>
void dequantize_block(const std::byte* block, float* out) {
  if constexpr (Quantized<F>) {
    constexpr int kInputs = static_cast<int>(F::kTraits.block);
    std::int32_t q[kInputs];
    float dw[kInputs / F::kTermInputs], mw[kInputs / F::kTermInputs];
    F::terms(block, q, dw, mw);
    for (int i = 0; i < kInputs; ++i) {
      const float product = dw[i / F::kTermInputs] * static_cast<float>(q[i]);
      out[i] = F::kHasMinimum ? product + mw[i / F::kTermInputs] : product;
    }
  } else {
    *out = F::value(block);
  }
}

// `count` values, a multiple of the block.
void dequantize(DType type, const std::byte* blocks, std::int64_t count, float* out);
void pack(DType type, const float* values, std::int64_t count, std::byte* blocks);
// The first block with a non-finite scale or value, or -1.
std::int64_t find_non_finite(DType type, const std::byte* blocks, std::int64_t block_count);

}  // namespace troupe::quant
