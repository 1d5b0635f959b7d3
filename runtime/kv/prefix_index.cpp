#include "runtime/kv/prefix_index.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr std::size_t kBlock = KvLayout::kPageTokens;

}  // namespace

// FNV-1a over the words. Only speed hangs on it: places are compared whole.
std::size_t PrefixIndex::HashPlace::operator()(const Place& place) const {
  std::uint64_t hash = 0xcbf29ce484222325u ^ place.parent * 0x9e3779b97f4a7c15u;
  for (TokenId token : place.tokens) hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3u;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

PrefixIndex::PrefixIndex(std::shared_ptr<PagePool> pool, std::int64_t most_pages)
    : pool_(std::move(pool)), most_pages_(most_pages) {}

PrefixIndex::~PrefixIndex() {
  for (const auto& [place, node] : nodes_) pool_->unshare({&node.page, 1});
}

std::unique_ptr<PageRun> PrefixIndex::find(const std::string& key, std::span<const TokenId> tokens) {
  auto run = std::make_unique<PageRun>(pool_);
  const std::lock_guard lock(mutex_);
  const auto known = roots_.find(key);
  if (known == roots_.end()) return run;
  Node* at = &known->second;
  for (std::size_t from = 0; from + kBlock <= tokens.size(); from += kBlock) {
    Node* next = child(*at, tokens.subspan(from, kBlock));
    if (next == nullptr) break;
    at = next;
    run->ids.push_back(at->page);
  }
  pool_->share(run->ids);
  run->shared = run->ids.size();
  touch_path(at);
  return run;
}

void PrefixIndex::publish(const std::string& key, std::span<const TokenId> tokens, std::span<const PageId> pages) {
  if (pages.empty() || most_pages_ <= 0) return;
  const std::lock_guard lock(mutex_);
  Node* at = &root(key);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto block = tokens.subspan(i * kBlock, kBlock);
    if (child(*at, block) == nullptr) add(*at, block, pages[i]);
    at = child(*at, block);
  }
  touch_path(at);
  const std::int64_t over = static_cast<std::int64_t>(nodes_.size()) - most_pages_;
  if (over > 0) evict_unused(over);
}

std::int64_t PrefixIndex::evict(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  return evict_unused(count);
}

void PrefixIndex::count(std::int64_t asked, std::int64_t found) {
  const std::lock_guard lock(mutex_);
  ++counters_.lookups;
  counters_.tokens_asked += static_cast<std::uint64_t>(asked);
  counters_.tokens_found += static_cast<std::uint64_t>(found);
}

PrefixCounters PrefixIndex::counters() const {
  const std::lock_guard lock(mutex_);
  PrefixCounters now = counters_;
  now.pages = static_cast<std::int64_t>(nodes_.size());
  return now;
}

PrefixIndex::Node& PrefixIndex::root(const std::string& key) {
  const auto [at, fresh] = roots_.try_emplace(key);
  if (fresh) {
    at->second.number = ++last_number_;
    at->second.key = &at->first;
  }
  return at->second;
}

PrefixIndex::Node* PrefixIndex::child(const Node& parent, std::span<const TokenId> block) {
  Place place{parent.number, {}};
  std::ranges::copy(block, place.tokens.begin());
  const auto found = nodes_.find(place);
  return found == nodes_.end() ? nullptr : &found->second;
}

void PrefixIndex::add(Node& parent, std::span<const TokenId> block, PageId page) {
  Place place{parent.number, {}};
  std::ranges::copy(block, place.tokens.begin());
  const auto at = nodes_.try_emplace(place).first;
  at->second.number = ++last_number_;
  at->second.parent = &parent;
  at->second.page = page;
  at->second.age = by_age_.insert(by_age_.end(), &at->first);
  ++parent.children;
  pool_->share({&page, 1});
}

// The page that was used stays longest, and what it stands on longer.
void PrefixIndex::touch_path(Node* leaf) {
  for (Node* node = leaf; node->parent != nullptr; node = node->parent) {
    by_age_.splice(by_age_.end(), by_age_, node->age);
  }
}

std::int64_t PrefixIndex::evict_unused(std::int64_t count) {
  std::int64_t gone = 0;
  for (auto at = by_age_.begin(); at != by_age_.end() && gone < count;) {
    const Place& place = **at++;
    const Node& node = nodes_.at(place);
    if (node.children > 0 || !pool_->alone(node.page)) continue;
    drop(place);
    ++gone;
  }
  counters_.pages_evicted += static_cast<std::uint64_t>(gone);
  return gone;
}

void PrefixIndex::drop(const Place& place) {
  const auto at = nodes_.find(place);
  Node& parent = *at->second.parent;
  pool_->unshare({&at->second.page, 1});
  by_age_.erase(at->second.age);
  nodes_.erase(at);
  if (--parent.children == 0 && parent.parent == nullptr) roots_.erase(roots_.find(*parent.key));
}

}  // namespace troupe
