// The pages of some sequences, each page an allocation of its own (an address sanitizer sees every overrun), poisoned:
// every byte 0xFF, which is a NaN in both float types and as a scale.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/batch_view.h"
#include "kernels/kv_layout.h"
#include "tests/support/random.h"

namespace troupe::test {

class KvPages {
 public:
  explicit KvPages(const KvLayout& layout) : layout_(layout) {}

  // A sequence with `position` tokens of random keys and values in every layer, and pages for `rows` more. Its first
  // row is the one after the last sequence's.
  void add(std::int64_t position, std::int64_t rows, Random& random);

  std::vector<SequenceView> sequences() const;
  std::int32_t rows() const { return next_row_; }
  const std::vector<std::int32_t>& positions() const { return positions_; }
  // All bytes of all pages, in order.
  std::vector<std::byte> bytes() const;

 private:
  struct Sequence {
    std::deque<std::vector<std::byte>> pages;
    std::vector<std::byte*> table;
    SequenceView view;
  };
  void write_token(Sequence& sequence, std::int64_t token, Random& random) const;

  KvLayout layout_;
  std::deque<Sequence> sequences_;
  std::vector<std::int32_t> positions_;
  std::int32_t next_row_ = 0;
};

}  // namespace troupe::test
