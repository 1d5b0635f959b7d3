#include "tests/support/kv_pages.h"

#include "kernels/reference/attention.h"

namespace troupe::test {

void KvPages::write_token(Sequence& sequence, std::int64_t token, Random& random) const {
  std::vector<float> k(static_cast<std::size_t>(layout_.head_dim)), v(k.size());
  for (int layer = 0; layer < layout_.layers; ++layer) {
    for (int head = 0; head < layout_.kv_heads; ++head) {
      for (std::size_t d = 0; d < k.size(); ++d) {
        k[d] = random.bell();
        v[d] = random.bell();
      }
      reference::KvHead{sequence.table.data(), layout_, layer, head}.store(token, k.data(), v.data());
    }
  }
}

void KvPages::add(std::int64_t position, std::int64_t rows, Random& random) {
  Sequence& sequence = sequences_.emplace_back();
  for (std::int64_t i = 0; i < pages_for(position + rows); ++i) {
    sequence.pages.emplace_back(layout_.page_bytes(), std::byte{0xFF});
    sequence.table.push_back(sequence.pages.back().data());
  }
  for (std::int64_t token = 0; token < position; ++token) write_token(sequence, token, random);
  sequence.view = {sequence.table.data(), next_row_, static_cast<std::int32_t>(rows),
                   static_cast<std::int32_t>(position)};
  next_row_ += static_cast<std::int32_t>(rows);
  for (std::int64_t i = 0; i < rows; ++i) positions_.push_back(static_cast<std::int32_t>(position + i));
}

std::vector<SequenceView> KvPages::sequences() const {
  std::vector<SequenceView> views;
  for (const Sequence& sequence : sequences_) views.push_back(sequence.view);
  return views;
}

std::vector<std::byte> KvPages::bytes() const {
  std::vector<std::byte> all;
  for (const Sequence& sequence : sequences_) {
    for (const std::vector<std::byte>& page : sequence.pages) all.insert(all.end(), page.begin(), page.end());
  }
  return all;
}

}  // namespace troupe::test
