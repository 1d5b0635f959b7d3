// The tree of pages that others may begin with.
#include "runtime/kv/prefix_index.h"

#include <gtest/gtest.h>
#include <map>
#include <thread>

#include "tests/runtime/pool_of.h"
#include "tests/support/random.h"

namespace troupe {
namespace {

constexpr std::size_t kBlock = KvLayout::kPageTokens;

struct House {
  std::shared_ptr<PagePool> pool;
  PrefixIndex index;

  explicit House(std::int64_t pages, std::int64_t most = 1'000) : pool(test::pool_of(pages)), index(pool, most) {}

  // A sequence that computes `tokens` without looking for others, and publishes.
  KvCache compute(const std::string& key, std::span<const TokenId> tokens) {
    KvCache cache(pool);
    EXPECT_TRUE(cache.reserve(std::ssize(tokens)));
    cache.lend();
    cache.commit(std::ssize(tokens));
    index.publish(key, tokens, cache.full_pages());
    return cache;
  }
  std::size_t found(const std::string& key, std::span<const TokenId> tokens) {
    return index.find(key, tokens)->ids.size();
  }
};

std::vector<TokenId> tokens(std::size_t count, TokenId from = 0) {
  std::vector<TokenId> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = from + static_cast<TokenId>(i % 1000);
  return all;
}

TEST(PrefixIndex, finds_the_longest_beginning_of_full_pages) {
  House house(32);
  const std::vector<TokenId> text = tokens(50);
  const KvCache cache = house.compute("", text);
  std::vector<TokenId> other = text;
  other.resize(200, 7);
  const auto run = house.index.find("", other);
  EXPECT_EQ(run->ids, (std::vector<PageId>(cache.full_pages().begin(), cache.full_pages().end())));
  EXPECT_EQ(run->ids.size(), 3u);
  other[20] = 999;
  EXPECT_EQ(house.found("", other), 1u);
  EXPECT_EQ(house.found("", std::span(text).first(15)), 0u);
  EXPECT_EQ(house.pool->used(), 4) << "nothing was copied";
}

TEST(PrefixIndex, the_same_tokens_after_other_tokens_are_another_page) {
  House house(32);
  std::vector<TokenId> first = tokens(32, 100), second = tokens(32, 500);
  std::copy_n(first.begin() + 16, 16, second.begin() + 16);
  const KvCache a = house.compute("", first), b = house.compute("", second);
  EXPECT_EQ(house.index.find("", second)->ids[1], b.full_pages()[1]);
  EXPECT_EQ(house.index.find("", first)->ids[1], a.full_pages()[1]);
}

TEST(PrefixIndex, shares_inside_one_key_only) {
  House house(32);
  const std::vector<TokenId> text = tokens(64);
  const KvCache cache = house.compute("alice", text);
  EXPECT_EQ(house.found("alice", text), 4u);
  EXPECT_EQ(house.found("bob", text), 0u);
  EXPECT_EQ(house.found("", text), 0u);
}

TEST(PrefixIndex, keeps_what_its_sequence_has_left_until_pages_are_wanted) {
  House house(8);
  const std::vector<TokenId> text = tokens(64);
  house.compute("", text);
  EXPECT_EQ(house.pool->used(), 4);
  EXPECT_EQ(house.found("", text), 4u);
  EXPECT_EQ(house.index.evict(1), 1);
  EXPECT_EQ(house.found("", text), 3u) << "the end of a text goes first";
  EXPECT_EQ(house.index.evict(10), 3);
  EXPECT_EQ(house.pool->used(), 0);
  EXPECT_EQ(house.index.counters().pages, 0);
}

TEST(PrefixIndex, gives_back_the_longest_unused_and_never_what_somebody_holds) {
  House house(16);
  const std::vector<TokenId> held = tokens(32, 0), old = tokens(32, 100), used = tokens(32, 200);
  const KvCache holder = house.compute("", held);
  house.compute("", old);
  house.compute("", used);
  house.found("", old);
  house.found("", used);
  EXPECT_EQ(house.index.evict(2), 2);
  EXPECT_EQ(house.found("", old), 0u);
  EXPECT_EQ(house.found("", used), 2u);
  EXPECT_EQ(house.found("", held), 2u);
  EXPECT_EQ(house.index.evict(100), 2) << "of six pages two are held";
  EXPECT_EQ(house.found("", held), 2u);
}

TEST(PrefixIndex, stays_within_its_limit) {
  House house(64, 6);
  for (TokenId i = 0; i < 20; ++i) house.compute("", tokens(32, 1000 * i));
  EXPECT_EQ(house.index.counters().pages, 6);
  EXPECT_EQ(house.pool->used(), 6);
  House off(64, 0);
  off.compute("", tokens(64));
  EXPECT_EQ(off.found("", tokens(64)), 0u);
  EXPECT_EQ(off.pool->used(), 0);
}

TEST(PrefixIndex, lets_go_of_its_pages_when_it_ends) {
  auto pool = House(1).pool;
  {
    House house(8);
    pool = house.pool;
    house.compute("", tokens(64));
    EXPECT_EQ(pool->used(), 4);
  }
  EXPECT_EQ(pool->used(), 0);
}

// Against a plain map from a beginning to its pages.
TEST(PrefixIndex, is_the_map_of_all_beginnings) {
  House house(4096);
  test::Random random(5);
  std::map<std::vector<TokenId>, PageId> plain;
  std::vector<KvCache> alive;
  for (int i = 0; i < 300; ++i) {
    std::vector<TokenId> text(static_cast<std::size_t>(random.below(100)));
    TokenId block = 0;
    for (std::size_t t = 0; t < text.size(); ++t) {
      if (t % kBlock == 0) block = static_cast<TokenId>(random.below(3));
      text[t] = block;
    }
    const auto run = house.index.find("", text);
    for (std::size_t page = 0; page < text.size() / kBlock; ++page) {
      const auto known = plain.find({text.begin(), text.begin() + static_cast<std::ptrdiff_t>((page + 1) * kBlock)});
      ASSERT_EQ(page < run->ids.size(), known != plain.end());
      ASSERT_TRUE(known == plain.end() || run->ids[page] == known->second);
    }
    alive.push_back(house.compute("", text));
    for (std::size_t page = 0; page < text.size() / kBlock; ++page) {
      plain.try_emplace({text.begin(), text.begin() + static_cast<std::ptrdiff_t>((page + 1) * kBlock)},
                        alive.back().full_pages()[page]);
    }
  }
  EXPECT_EQ(house.index.counters().pages, std::ssize(plain));
}

TEST(PrefixIndex, may_be_asked_told_and_emptied_from_many_threads) {
  House house(512);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        test::Random random(static_cast<std::uint64_t>(thread));
        for (int i = 0; i < 300; ++i) {
          const std::vector<TokenId> text = tokens(64, static_cast<TokenId>(random.below(6) * 1000));
          const auto run = house.index.find("", text);
          if (run->ids.empty()) house.compute("", text);
          if (i % 7 == 0) house.index.evict(3);
        }
      });
    }
  }
  house.index.evict(1'000);
  EXPECT_EQ(house.pool->used(), 0);
}

}  // namespace
}  // namespace troupe
