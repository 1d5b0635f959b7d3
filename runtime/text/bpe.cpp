#include "runtime/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <span>

namespace troupe {
namespace {

constexpr std::uint32_t kNoRank = 0xffffffffu;
// Places are 31-bit numbers. Blocks do not grow beyond this, even if the next begins with another token than expected.
constexpr std::size_t kLargestBlock = std::size_t{1} << 30;

std::uint64_t pair_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

// Fibonacci hashing of the folded pair; ids of 18 bits each would otherwise meet in the low half only.
std::size_t slot_of(std::uint64_t pair, std::size_t slots) {
  return static_cast<std::size_t>(((pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15ull) >> 32) & (slots - 1);
}

Bpe::Scratch::Symbol& at(Bpe::Scratch& scratch, std::int32_t place) {
  return scratch.symbols[static_cast<std::size_t>(place)];
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary) {
  const std::span<const Merge> merges = vocabulary.merges();
  table_.resize(std::bit_ceil(std::max<std::size_t>(16, 2 * merges.size())));
  joined_.reserve(merges.size());
  for (const Merge& merge : merges) {
    insert(pair_of(merge.left, merge.right), static_cast<std::uint32_t>(joined_.size()));
    joined_.push_back(merge.joined);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    of_byte_[byte] = vocabulary.find(std::string_view(&c, 1)).value_or(-1);
  }
}

// Of a pair that stands twice the first, with the lower rank, is the one that rank_of() meets.
void Bpe::insert(std::uint64_t pair, std::uint32_t rank) {
  std::size_t slot = slot_of(pair, table_.size());
  while (table_[slot].pair != Entry().pair) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = {pair, rank};
}

std::uint32_t Bpe::rank_of(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_of(left, right);
  for (std::size_t slot = slot_of(pair, table_.size());; slot = (slot + 1) & (table_.size() - 1)) {
    if (table_[slot].pair == pair) return table_[slot].rank;
    if (table_[slot].pair == Entry().pair) return kNoRank;
  }
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out, std::size_t block) const {
  const std::size_t before = out.size();
  for (; !encode_in_blocks(piece, block, scratch, out); block *= 2) out.resize(before);
}

// False if a block's end turned out to depend on text behind the block.
bool Bpe::encode_in_blocks(std::string_view piece, std::size_t block, Scratch& scratch,
                           std::vector<TokenId>& out) const {
  // The last eighth sees too little of what follows. Tokens of more than a few hundred bytes are not known.
  const auto trusted = static_cast<std::int32_t>(block - block / 8);
  TokenId expected = -1;
  while (true) {
    const bool cut = start(piece, block, scratch);
    if (scratch.symbols.empty()) return true;
    merge_all(scratch);
    if (expected >= 0 && at(scratch, 0).id != expected && block < kLargestBlock) return false;
    std::int32_t place = 0;
    for (; place >= 0 && (!cut || place < trusted); place = at(scratch, place).next) {
      out.push_back(at(scratch, place).id);
    }
    if (place < 0) return !cut;
    expected = at(scratch, place).id;
    piece.remove_prefix(at(scratch, place).byte);
  }
}

// The symbols of the first `block` bytes that have a token. True if there are more behind them.
bool Bpe::start(std::string_view piece, std::size_t block, Scratch& scratch) const {
  scratch.symbols.clear();
  bool cut = false;
  for (std::size_t i = 0; i < piece.size() && !cut; ++i) {
    const TokenId id = of_byte_[static_cast<unsigned char>(piece[i])];
    if (id < 0) continue;
    const auto place = static_cast<std::int32_t>(scratch.symbols.size());
    cut = scratch.symbols.size() == block;
    if (!cut) scratch.symbols.push_back({id, place - 1, place + 1, kNoRank, i});
  }
  if (!scratch.symbols.empty()) scratch.symbols.back().next = -1;
  return cut;
}

// Queues the pair that begins at `left`, if there is one.
void Bpe::offer(Scratch& scratch, std::int32_t left) const {
  if (left < 0) return;
  Scratch::Symbol& symbol = at(scratch, left);
  symbol.rank = symbol.next < 0 ? kNoRank : rank_of(symbol.id, at(scratch, symbol.next).id);
  if (symbol.rank == kNoRank) return;
  scratch.heap.push_back(static_cast<std::uint64_t>(symbol.rank) << 32 | static_cast<std::uint32_t>(left));
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
  ++scratch.offers;
}

void Bpe::merge_all(Scratch& scratch) const {
  auto& heap = scratch.heap;
  const auto count = static_cast<std::int32_t>(scratch.symbols.size());
  for (std::int32_t place = 0; place < count; ++place) offer(scratch, place);
  while (!heap.empty()) {
    const auto rank = static_cast<std::uint32_t>(heap.front() >> 32);
    const auto place = static_cast<std::int32_t>(heap.front() & 0xffffffffu);
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    Scratch::Symbol& left = at(scratch, place);
    if (left.rank != rank) continue;  // the pair is gone: one of the two was joined to its other neighbour
    Scratch::Symbol& right = at(scratch, left.next);
    left.id = joined_[rank];
    left.next = right.next;
    right.rank = kNoRank;
    if (left.next >= 0) at(scratch, left.next).previous = place;
    offer(scratch, left.previous);
    offer(scratch, place);
  }
}

}  // namespace troupe
