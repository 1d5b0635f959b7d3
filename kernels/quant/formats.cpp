#include "kernels/quant/formats.h"

#include <array>

namespace troupe {
namespace {

template <std::size_t... Is>
constexpr std::array<TypeTraits, sizeof...(Is)> all_traits(std::index_sequence<Is...>) {
  return {std::tuple_element_t<Is, quant::Formats>::kTraits...};
}

constexpr auto kAllTraits = all_traits(std::make_index_sequence<std::tuple_size_v<quant::Formats>>());

}  // namespace

const TypeTraits& traits(DType type) {
  return kAllTraits.at(static_cast<std::size_t>(type));
}

const TypeTraits* find_gguf_type(std::uint32_t gguf_type) {
  for (const TypeTraits& one : kAllTraits) {
    if (one.gguf_type == gguf_type) return &one;
  }
  return nullptr;
}

namespace quant {

void dequantize(DType type, const std::byte* blocks, std::int64_t count, float* out) {
  visit_format(type, [&]<class F>(F) {
    for (std::int64_t i = 0; i < count; i += F::kTraits.block, blocks += F::kTraits.bytes) {
      dequantize_block<F>(blocks, out + i);
    }
  });
}

void pack(DType type, const float* values, std::int64_t count, std::byte* blocks) {
  visit_format(type, [&]<class F>(F) {
    for (std::int64_t i = 0; i < count; i += F::kTraits.block, blocks += F::kTraits.bytes) F::pack(values + i, blocks);
  });
}

std::int64_t find_non_finite(DType type, const std::byte* blocks, std::int64_t block_count) {
  return visit_format(type, [&]<class F>(F) -> std::int64_t {
    for (std::int64_t b = 0; b < block_count; ++b) {
      if (!F::finite(blocks + b * F::kTraits.bytes)) return b;
    }
    return -1;
  });
}

}  // namespace quant
}  // namespace troupe
