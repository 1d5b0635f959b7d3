// PrefixIndex: finds the pages in which some sequence has computed the same beginning before.
//
// A tree of full pages. A page's place is its parent and its 16 tokens, compared token by token, so a hit is never a
// matter of a hash; a root is the sharing key, so nobody finds a stranger's pages. As keys and values of a token depend
// only on the tokens before it (docs/numerics.md, L1), a page that is found holds the bits that computing would give.
// The tree is of one engine: model, precision and numerics are the same for all of it.
//
// The index holds a share of each of its pages. Pages that nobody else holds are a cache: evict() gives them back, the
// longest unused first, leaves before what they stand on. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/kv/kv_cache.h"
#include "runtime/text/token.h"

namespace troupe {

// Totals of an index since it was made, and the pages it holds now.
struct PrefixCounters {
  std::int64_t pages = 0;
  std::uint64_t lookups = 0;                         // turns that looked
  std::uint64_t tokens_asked = 0, tokens_found = 0;  // by these
  std::uint64_t pages_evicted = 0;
};

class PrefixIndex {
 public:
  // Past `most_pages` pages in the tree, those that nobody else holds go.
  PrefixIndex(std::shared_ptr<PagePool> pool, std::int64_t most_pages);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  bool keeps_pages() const { return most_pages_ > 0; }
  // The longest known beginning of `tokens`, as shares of its pages (KvCache::begin_with).
  std::unique_ptr<PageRun> find(const std::string& key, std::span<const TokenId> tokens);
  // `pages` hold the first 16 * pages.size() of `tokens`, committed. Pages whose place is taken already stay outside.
  void publish(const std::string& key, std::span<const TokenId> tokens, std::span<const PageId> pages);
  // Gives back up to `count` pages; how many it could.
  std::int64_t evict(std::int64_t count);

  // A turn was admitted that asked for so many tokens and got so many.
  void count(std::int64_t asked, std::int64_t found);
  PrefixCounters counters() const;

 private:
  using Block = std::array<TokenId, KvLayout::kPageTokens>;
  struct Place {
    std::uint64_t parent;  // number of the node, or of the root
    Block tokens;
    bool operator==(const Place&) const = default;
  };
  struct HashPlace {
    std::size_t operator()(const Place& place) const;
  };
  struct Node {
    std::uint64_t number = 0;
    Node* parent = nullptr;  // null: this is a root, and has no page
    PageId page = 0;
    std::int64_t children = 0;
    std::list<const Place*>::iterator age{};  // in by_age_
    const std::string* key = nullptr;         // of a root
  };

  Node& root(const std::string& key);
  Node* child(const Node& parent, std::span<const TokenId> block);
  void add(Node& parent, std::span<const TokenId> block, PageId page);
  void drop(const Place& place);
  void touch_path(Node* leaf);
  std::int64_t evict_unused(std::int64_t count);

  std::shared_ptr<PagePool> pool_;
  std::int64_t most_pages_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Node> roots_;
  std::unordered_map<Place, Node, HashPlace> nodes_;
  std::list<const Place*> by_age_;  // the longest unused first
  std::uint64_t last_number_ = 0;
  PrefixCounters counters_;
};

}  // namespace troupe
