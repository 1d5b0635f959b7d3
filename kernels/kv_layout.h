// Where the keys and values of one token lie in a page.
//
// A page holds 16 tokens (slots) of every layer. Inside a page: [layer][K | V][kv head][...] with
//     K: [head_dim][16 slots]   transposed, so that the scores of 16 tokens are 16 lanes of one vector
//     V: [16 slots][head_dim]
// in the element type of the pool; behind each K and each V of i8 stand [16 slots] float32, the scale of each token's.
// One page is one contiguous run of page_bytes() bytes, and every K, V and row of scales in it is aligned to 64, as
// head_dim is a multiple of 16.
// (numerics.md, "Attention"; the layout is the contract of every backend's store and attend.)
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

enum class KvType : std::uint8_t { f16, f32, i8 };
inline constexpr KvType kKvTypes[] = {KvType::f16, KvType::f32, KvType::i8};

constexpr const char* name(KvType type) {
  return type == KvType::f16 ? "f16" : type == KvType::f32 ? "f32" : "i8";
}

struct KvLayout {
  static constexpr int kPageTokens = 16;

  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  KvType type = KvType::f16;

  std::size_t element_bytes() const { return type == KvType::f16 ? 2 : type == KvType::f32 ? 4 : 1; }
  std::size_t scale_bytes() const { return type == KvType::i8 ? sizeof(float) : 0; }  // of a token and head
  // From the start of one head's K (or V) in a page to its scales.
  std::size_t scales_at() const { return element_bytes() * kPageTokens * static_cast<std::size_t>(head_dim); }
  // Bytes of one head's K (or V) in one page.
  std::size_t head_bytes() const { return scales_at() + scale_bytes() * kPageTokens; }
  std::size_t layer_bytes() const { return 2 * head_bytes() * static_cast<std::size_t>(kv_heads); }
  std::size_t page_bytes() const { return layer_bytes() * static_cast<std::size_t>(layers); }
  std::size_t bytes_per_token() const { return page_bytes() / kPageTokens; }

  std::size_t k_offset(int layer, int head) const {
    return layer_bytes() * static_cast<std::size_t>(layer) + head_bytes() * static_cast<std::size_t>(head);
  }
  std::size_t v_offset(int layer, int head) const {
    return k_offset(layer, head) + head_bytes() * static_cast<std::size_t>(kv_heads);
  }
};

// Pages needed to hold `tokens` tokens.
constexpr std::int64_t pages_for(std::int64_t tokens) {
  return (tokens + KvLayout::kPageTokens - 1) / KvLayout::kPageTokens;
}

}  // namespace troupe
