// Bpe: byte-pair encoding of one piece by a vocabulary's merges (Sennrich et al. 2016).
//
// Starts from the piece's bytes (a byte without a token is dropped before any merge) and joins the neighbouring pair of
// the lowest rank, leftmost first, until none can be joined. Immutable, thread-safe: each caller brings its Scratch.
//
// A heap over a linked list costs n log n, and its memory is walked at random: a piece of 8 MiB (one letter repeated)
// in one go would take twelve times as long as 1 MiB. So a long piece is done in overlapping blocks, and its cost is
// linear. This is exact: tokens are the encoding of their text if and only if every two neighbours, encoded alone, stay
// as they are (nothing but a pair across a boundary can undo it, and what happens between two boundaries that are never
// crossed does not depend on the rest: Berglund and van der Merwe 2023, "Formalizing BPE tokenization"). A block
// therefore ends before a token with which the next block begins too; should the next one begin otherwise, all is done
// again in blocks of twice the size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/text/vocabulary.h"

namespace troupe {

class Bpe {
 public:
  explicit Bpe(const Vocabulary& vocabulary);

  // Working memory of one caller, kept between pieces. It grows to one block: about 150 KB.
  struct Scratch {
    struct Symbol {
      TokenId id;
      std::int32_t previous, next;  // places in `symbols`; below 0: none
      std::uint32_t rank;           // of the pair that begins here
      std::size_t byte;             // where its text begins in the block
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> heap;  // rank << 32 | place
    std::uint64_t offers = 0;         // pairs that were queued: the work done, for tests
  };
  // Appends the ids of `piece` to `out`. `block` (bytes with a token) is for tests.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out, std::size_t block = kBlock) const;

  static constexpr std::size_t kBlock = 4096;

 private:
  struct Entry {
    std::uint64_t pair = ~std::uint64_t{0};  // left id << 32 | right id
    std::uint32_t rank = 0;
  };

  void insert(std::uint64_t pair, std::uint32_t rank);
  std::uint32_t rank_of(TokenId left, TokenId right) const;
  bool encode_in_blocks(std::string_view piece, std::size_t block, Scratch& scratch, std::vector<TokenId>& out) const;
  bool start(std::string_view piece, std::size_t block, Scratch& scratch) const;
  void offer(Scratch& scratch, std::int32_t left) const;
  void merge_all(Scratch& scratch) const;

  std::vector<Entry> table_;     // open addressing, a power of two, at most half full
  std::vector<TokenId> joined_;  // by rank
  TokenId of_byte_[256];
};

}  // namespace troupe
