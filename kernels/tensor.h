// Element types and the Tensor view.
//
// A Tensor is a view: somebody else owns the memory (a Buffer, a mapped file, a test's vector). It is row-major; a row
// of a quantized type holds whole blocks, in the byte layout of the GGUF file. What a backend computes with is not a
// Tensor but a PreparedWeight (kernels/backend.h), laid out for that backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

// The formats of kernels/quant/formats.h, in the order of its list.
enum class DType : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

// What is known of a type without its arithmetic. block: elements a block; bytes: bytes a block.
struct TypeTraits {
  DType type;
  std::string_view name;    // as GGUF writes it: "Q4_K"
  std::uint32_t gguf_type;  // the number in a GGUF tensor table
  std::uint32_t block;
  std::uint32_t bytes;
};
const TypeTraits& traits(DType type);
// nullptr if this build does not know the number.
const TypeTraits* find_gguf_type(std::uint32_t gguf_type);

struct Tensor {
  const std::byte* data = nullptr;
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // a multiple of the type's block

  std::int64_t row_bytes() const { return cols / traits(type).block * traits(type).bytes; }
};

}  // namespace troupe
