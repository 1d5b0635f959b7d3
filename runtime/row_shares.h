// RowShares: whose rows are next in a launch, so that keys get rows by their weights and nobody starves.
//
// Start-time fair queueing (Goyal, Vin and Cheng 1996), on two levels: the keys, and the four lanes of each key. Every
// key has a tag, the virtual time at which its next row begins; a row moves it by 1 / weight. The lowest tag is next,
// and its tag is the time now. Who comes (back) begins now: nobody saves up by asking for nothing, nobody is punished
// for rows that no one else wanted. So while two keys both want rows, what they get differs from their weights by less
// than one portion each, in every stretch of time.
//
// Within a key what decodes comes before prompts (8 : 1), and what is interactive before what is background (16 : 1 at
// least). A lane that wants little is served first, so streams run smoothly; one that wants all there is leaves the
// next its ninth, or its seventeenth: a portion in so many.
//
//     shares.begin();
//     shares.offer(key, lane, item);          // in order of arrival, within a lane the first offered is served first
//     while (auto item = shares.next()) shares.took(rows, wants_no_more);
//     shares.end();
//
// What it decides is who waits; the bits of an answer never depend on it. Plain data, deterministic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/key_weights.h"

namespace troupe {

enum class Lane : std::uint8_t { decode, prompt, background_decode, background_prompt };

class RowShares {
 public:
  explicit RowShares(KeyWeights weights = {}) : weights_(std::move(weights)) {}

  void begin();
  void offer(const std::string& key, Lane lane, std::size_t item);
  // The item whose turn it is; nothing when no item is left.
  std::optional<std::size_t> next();
  // The item that next() named got so many rows, or rows' worth.
  void took(double rows, bool wants_no_more);
  // Forgets the keys that have no claim; call after the last took().
  void end();

  std::size_t keys_known() const { return accounts_.size(); }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::array<double, kLanes> kLaneWeights{1024.0, 128.0, 8.0, 1.0};

  struct Line {
    double tag = 0.0;
    std::vector<std::size_t> items;
    std::size_t served = 0;  // items that want no more
    bool empty() const { return served == items.size(); }
  };
  struct Account {
    double weight = 1.0;
    double tag = 0.0;
    double now = 0.0;       // the virtual time among its lanes
    std::size_t place = 0;  // among the keys of this launch, by arrival: decides between equal tags
    std::size_t wanting = 0;
    std::array<Line, kLanes> lines;
  };
  static bool later(const Account* a, const Account* b);
  static Line& next_line(Account& account);

  KeyWeights weights_;
  double now_ = 0.0, latest_ = 0.0;  // the virtual time, and the highest tag there was
  std::unordered_map<std::string, Account> accounts_;
  std::vector<Account*> wanting_;  // a heap, the lowest tag first
};

}  // namespace troupe
