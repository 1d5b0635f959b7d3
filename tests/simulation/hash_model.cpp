#include "tests/simulation/hash_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::test {
namespace {

constexpr std::int64_t kSlots = KvLayout::kPageTokens;
constexpr TokenId kEndToken = 2;        // of the tiny model
constexpr TokenId kFirstByteToken = 3;  // its token of byte 0

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Tokens of one printable character each, so that every token releases its text at once; now and then the end. What the
// penalties count changes the token, as it would a real one. Mostly a token follows from the last one, so that an
// answer repeats itself and can be guessed.
TokenId chosen(Chain chain, TokenId last, std::uint64_t seed, std::int64_t counted, bool ban_end) {
  const std::uint64_t hash = mixed(mixed(chain ^ seed) + static_cast<std::uint64_t>(counted));
  if (!ban_end && hash % 13 == 0) return kEndToken;
  const std::uint64_t word = (hash >> 40) % 4 > 0 ? mixed(static_cast<std::uint64_t>(last) % 12) : hash;
  return kFirstByteToken + static_cast<TokenId>(33 + (word >> 8) % 90);
}

std::int64_t counted_in(const SamplerState* state) {
  std::int64_t all = 0;
  if (state == nullptr) return all;
  for (const auto& [token, times] : state->in_answer) all += times;
  return all;
}

}  // namespace

Chain chained(Chain before, TokenId token) {
  return mixed(before * 3 + static_cast<std::uint64_t>(token) + 1);
}

std::vector<TokenId> true_answer(std::span<const TokenId> history, const Turn& turn, std::size_t count) {
  Chain chain = kNoTokens;
  TokenId last = 0;
  const auto follow = [&](TokenId token) { chain = chained(chain, last = token); };
  std::ranges::for_each(history, follow);
  std::ranges::for_each(turn.tokens, follow);
  const bool penalties = turn.sampling->frequency_penalty != 0.0f;
  std::vector<TokenId> answer;
  while (answer.size() < count && (answer.empty() || answer.back() != kEndToken)) {
    const auto said = std::ssize(answer);
    const bool ban_end = turn.limits.ignore_eos || said < turn.limits.min_tokens;
    answer.push_back(chosen(chain, last, turn.sampling->seed, penalties ? said : 0, ban_end));
    follow(answer.back());
  }
  return answer;
}

HashModel::HashModel(std::shared_ptr<PagePool> pages, Seam seam, Report report)
    : pages_(std::move(pages)), seam_(std::move(seam)), report_(std::move(report)) {}

// The order is the engine's: copies of shared pages, then rows, then the tokens.
void HashModel::run(std::span<Slice> batch) {
  seam_(batch);
  check_one_writer_a_page(batch);
  for (const Slice& slice : batch) {
    if (slice.position == slice.cache->position()) slice.cache->copy_shared_page();
  }
  seam_(batch);
  for (const Slice& slice : batch) {
    checked_chain(slice, slice.position);
    write(slice);
    seam_(batch);
  }
  for (Slice& slice : batch) sample(slice);
}

HashModel::Tag HashModel::read(const Slice& slice, std::int64_t position) const {
  Tag tag;
  std::memcpy(&tag, slice.cache->pages()[position / kSlots] + sizeof(Tag) * static_cast<std::size_t>(position % kSlots),
              sizeof(Tag));
  return tag;
}

std::int64_t HashModel::page_of(const Slice& slice, std::int64_t position) const {
  const auto bytes = slice.cache->pages()[position / kSlots] - pages_->address(0);
  return bytes / static_cast<std::int64_t>(pages_->layout().page_bytes());
}

void HashModel::check_one_writer_a_page(std::span<const Slice> batch) {
  std::vector<std::int64_t> written;
  for (const Slice& slice : batch) {
    const std::int64_t end = slice.position + std::ssize(slice.tokens);
    if (end > slice.cache->capacity()) return report_("a step of more tokens than its pages hold");
    for (std::int64_t at = slice.position / kSlots * kSlots; at < end; at += kSlots)
      written.push_back(page_of(slice, at));
  }
  std::ranges::sort(written);
  const auto twice = std::ranges::adjacent_find(written);
  if (twice != written.end()) report_("page " + std::to_string(*twice) + " has two writers in one launch");
}

Chain HashModel::checked_chain(const Slice& slice, std::int64_t tokens) {
  Chain chain = kNoTokens;
  for (std::int64_t at = 0; at < tokens; ++at) {
    const Tag tag = read(slice, at);
    chain = chained(chain, static_cast<TokenId>(tag.token));
    if (tag.chain == chain) continue;
    report_("position " + std::to_string(at) + " of a sequence that has " + std::to_string(tokens) +
            " is not its own any more (page " + std::to_string(page_of(slice, at)) + ")");
    break;
  }
  return chain;
}

void HashModel::write(const Slice& slice) {
  Chain chain = slice.position == 0 ? kNoTokens : read(slice, slice.position - 1).chain;
  std::int64_t at = slice.position;
  for (TokenId token : slice.tokens) {
    if (!pages_->writable(static_cast<PageId>(page_of(slice, at)), static_cast<int>(at % kSlots))) {
      report_("position " + std::to_string(at) + " is written, but page " + std::to_string(page_of(slice, at)) +
              " is shared with somebody who relies on it");
    }
    chain = chained(chain, token);
    const Tag tag{chain, token};
    std::memcpy(slice.cache->pages()[at / kSlots] + sizeof(Tag) * static_cast<std::size_t>(at % kSlots), &tag,
                sizeof(Tag));
    ++at;
  }
}

void HashModel::sample(Slice& slice) {
  const std::int64_t known = std::ssize(slice.tokens) - slice.drafts;
  Chain chain = checked_chain(slice, slice.position + known);
  if (!slice.wants_token) return;
  const std::int64_t counted = counted_in(slice.state);
  const bool penalties = slice.sampling->frequency_penalty != 0.0f;
  for (std::int32_t nth = 0;; ++nth) {
    const TokenId last = slice.tokens[static_cast<std::size_t>(known + nth - 1)];
    Sampled& sampled = nth == 0 ? slice.sampled : slice.after[static_cast<std::size_t>(nth - 1)];
    sampled.token = chosen(chain, last, slice.sampling->seed, penalties ? counted + nth : 0, slice.no_end_for > nth);
    slice.right = nth;
    if (nth == slice.drafts || sampled.token != slice.tokens[static_cast<std::size_t>(known + nth)]) return;
    chain = checked_chain(slice, slice.position + known + nth + 1);
  }
}

}  // namespace troupe::test
