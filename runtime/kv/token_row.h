// TokenRow: one token's keys and values of one layer, in a page, and as a row: [K | V][kv head][head_dim, scale of i8].
//
// Touches this token's bytes only: a launch may be writing the next token's, in the same page.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/kv_layout.h"

namespace troupe {

class TokenRow {
 public:
  TokenRow(const KvLayout& layout, int layer, int slot) : layout_(layout), layer_(layer), slot_(slot) {}

  static std::size_t bytes(const KvLayout& layout) { return layout.layer_bytes() / KvLayout::kPageTokens; }
  void read(const std::byte* page, std::byte* row) const {
    each([&](std::size_t at, std::size_t in_row, std::size_t size) { std::memcpy(row + in_row, page + at, size); });
  }
  void write(std::byte* page, const std::byte* row) const {
    each([&](std::size_t at, std::size_t in_row, std::size_t size) { std::memcpy(page + at, row + in_row, size); });
  }

 private:
  template <class Copy>
  void each(Copy&& copy) const {
    const std::size_t element = layout_.element_bytes(), dim = static_cast<std::size_t>(layout_.head_dim);
    const std::size_t scale = layout_.scale_bytes();
    const auto slot = static_cast<std::size_t>(slot_);
    std::size_t in_row = 0;
    const auto copy_scale = [&](std::size_t head) {
      copy(head + layout_.scales_at() + scale * slot, in_row, scale);
      in_row += scale;
    };
    for (int head = 0; head < layout_.kv_heads; ++head) {
      const std::size_t k = layout_.k_offset(layer_, head);
      for (std::size_t d = 0; d < dim; ++d, in_row += element) {
        copy(k + element * (d * KvLayout::kPageTokens + slot), in_row, element);
      }
      copy_scale(k);
    }
    for (int head = 0; head < layout_.kv_heads; ++head) {
      const std::size_t v = layout_.v_offset(layer_, head);
      copy(v + element * dim * slot, in_row, element * dim);
      in_row += element * dim;
      copy_scale(v);
    }
  }

  const KvLayout& layout_;
  int layer_, slot_;
};

// The first `tokens` tokens of a page, of all layers; nothing else of `to` is written.
inline void copy_tokens(const KvLayout& layout, const std::byte* from, std::byte* to, int tokens) {
  std::vector<std::byte> bytes(TokenRow::bytes(layout));
  for (int layer = 0; layer < layout.layers; ++layer) {
    for (int slot = 0; slot < tokens; ++slot) {
      const TokenRow row(layout, layer, slot);
      row.read(from, bytes.data());
      row.write(to, bytes.data());
    }
  }
}

}  // namespace troupe
