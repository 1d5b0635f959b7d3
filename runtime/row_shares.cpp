#include "runtime/row_shares.h"

#include <algorithm>

#include "kernels/check.h"

namespace troupe {

bool RowShares::later(const Account* a, const Account* b) {
  return a->tag != b->tag ? a->tag > b->tag : a->place > b->place;
}

void RowShares::begin() {
  wanting_.clear();
  for (auto& [key, account] : accounts_) {
    account.wanting = 0;
    for (Line& line : account.lines) {
      line.items.clear();
      line.served = 0;
    }
  }
}

void RowShares::offer(const std::string& key, Lane lane, std::size_t item) {
  const auto [at, is_new] = accounts_.try_emplace(key);
  Account& account = at->second;
  if (is_new) account.weight = weights_[key];
  if (account.wanting++ == 0) {
    account.tag = std::max(account.tag, now_);
    account.place = wanting_.size();
    wanting_.push_back(&account);
    std::ranges::push_heap(wanting_, later);
  }
  Line& line = account.lines[static_cast<std::size_t>(lane)];
  if (line.items.empty()) line.tag = std::max(line.tag, account.now);
  line.items.push_back(item);
}

RowShares::Line& RowShares::next_line(Account& account) {
  Line* best = nullptr;
  for (Line& line : account.lines) {
    if (!line.empty() && (best == nullptr || line.tag < best->tag)) best = &line;
  }
  TROUPE_CHECK(best != nullptr);
  return *best;
}

std::optional<std::size_t> RowShares::next() {
  if (wanting_.empty()) return std::nullopt;
  const Line& line = next_line(*wanting_.front());
  return line.items[line.served];
}

void RowShares::took(double rows, bool wants_no_more) {
  TROUPE_CHECK(rows > 0 && !wanting_.empty());
  Account& account = *wanting_.front();
  std::ranges::pop_heap(wanting_, later);
  Line& line = next_line(account);
  now_ = account.tag;
  account.now = line.tag;
  account.tag += rows / account.weight;
  latest_ = std::max(latest_, account.tag);
  line.tag += rows / kLaneWeights[static_cast<std::size_t>(&line - account.lines.data())];
  if (wants_no_more) {
    ++line.served;
    --account.wanting;
  }
  if (account.wanting == 0) return wanting_.pop_back();
  std::ranges::push_heap(wanting_, later);
}

// Where all were served, all begin alike. A key that wants nothing and whose tag is not ahead would begin now anyway.
void RowShares::end() {
  if (wanting_.empty()) now_ = latest_;
  std::erase_if(accounts_, [this](const auto& entry) { return entry.second.wanting == 0 && entry.second.tag <= now_; });
}

}  // namespace troupe
