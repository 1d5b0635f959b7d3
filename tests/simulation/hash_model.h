// HashModel: what computes in the engine's place in a simulation.
//
// A token is a hash of the turn's sampling seed and of all the tokens before it, so everybody can say what an answer
// must be. Instead of keys and values a position gets a tag in its page: the token and the hash of all tokens up to it.
// Before and after a step is computed the tags of all earlier positions are checked, so a page that was overwritten,
// given away too early or not copied is found by whoever reads it. A write is checked too: nobody may rely on the slot.
//
// A launch has seams: between its parts it calls `seam`, where a simulation lets other actors run or throws a fault,
// as a batcher's own thread and a device would.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/records.h"
#include "runtime/batch.h"

namespace troupe::test {

// The hash of a sequence of tokens.
using Chain = std::uint64_t;
constexpr Chain kNoTokens = 0x243F6A8885A308D3ull;
Chain chained(Chain before, TokenId token);

// The first `count` tokens, or all up to the end, of the answer to `turn` (which names its sampling) after `history`.
std::vector<TokenId> true_answer(std::span<const TokenId> history, const Turn& turn, std::size_t count);

class HashModel {
 public:
  using Seam = std::function<void(std::span<Slice>)>;
  using Report = std::function<void(std::string)>;

  // Both are called inside run().
  HashModel(std::shared_ptr<PagePool> pages, Seam seam, Report report);

  void run(std::span<Slice> batch);

 private:
  struct Tag {
    Chain chain;
    std::int64_t token;
  };

  Tag read(const Slice& slice, std::int64_t position) const;
  std::int64_t page_of(const Slice& slice, std::int64_t position) const;
  void check_one_writer_a_page(std::span<const Slice> batch);
  Chain checked_chain(const Slice& slice, std::int64_t tokens);
  void write(const Slice& slice);
  void sample(Slice& slice);

  std::shared_ptr<PagePool> pages_;
  Seam seam_;
  Report report_;
};

}  // namespace troupe::test
