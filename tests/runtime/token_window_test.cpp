// TokenWindow: which tokens are seen of a history that outgrows it.
#include "runtime/token_window.h"

#include <gtest/gtest.h>
#include <numeric>

namespace troupe {
namespace {

std::vector<TokenId> numbered(std::int64_t length) {
  std::vector<TokenId> history(static_cast<std::size_t>(length));
  std::iota(history.begin(), history.end(), 0);
  return history;
}

TEST(TokenWindow, sees_everything_unless_it_is_endless) {
  const TokenWindow window;
  EXPECT_FALSE(window.endless());
  EXPECT_EQ(window.dropped(1'000'000), 0);
  EXPECT_EQ(window.visible(numbered(50), 0), numbered(50));
  EXPECT_EQ(window.visible(numbered(50), 48), (std::vector<TokenId>{48, 49}));
}

TEST(TokenWindow, drops_the_older_half_behind_the_sinks_when_it_is_full) {
  const TokenWindow window{20, 4};
  EXPECT_EQ(window.dropped(19), 0);
  EXPECT_EQ(window.dropped(20), 8);
  EXPECT_EQ(window.visible(numbered(20), 0), (std::vector<TokenId>{0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(window.dropped(27), 8);
  EXPECT_EQ(window.dropped(28), 16);
  EXPECT_EQ(window.visible(numbered(29), 0), (std::vector<TokenId>{0, 1, 2, 3, 20, 21, 22, 23, 24, 25, 26, 27, 28}));
}

// The plain way: a list that is cut whenever it is full.
TEST(TokenWindow, sees_what_a_list_would_hold_that_is_cut_whenever_it_is_full) {
  for (const TokenWindow window : {TokenWindow{16, 0}, TokenWindow{17, 4}, TokenWindow{20, 10}}) {
    std::vector<TokenId> list;
    for (TokenId next = 0; next < 300; ++next) {
      list.push_back(next);
      if (std::ssize(list) == window.tokens) {
        const auto behind = list.begin() + window.sinks;
        list.erase(behind, behind + (window.tokens - window.sinks + 1) / 2);
      }
      const auto history = numbered(next + 1);
      ASSERT_EQ(window.visible(history, 0), list) << next;
      ASSERT_LT(window.seen(next + 1), window.tokens);
      for (std::int64_t from = 0; from <= std::ssize(list); from += 3) {
        ASSERT_EQ(window.visible(history, from), (std::vector<TokenId>(list.begin() + from, list.end()))) << from;
      }
    }
  }
}

TEST(TokenWindow, counts_what_is_seen_before_a_place_in_the_history) {
  const TokenWindow window{20, 4};
  EXPECT_EQ(window.seen_before(3, 8), 3);
  EXPECT_EQ(window.seen_before(7, 8), 4) << "among the dropped";
  EXPECT_EQ(window.seen_before(12, 8), 4);
  EXPECT_EQ(window.seen_before(15, 8), 7);
  EXPECT_EQ(window.seen_before(15, 0), 15);
}

TEST(TokenWindow, refuses_sizes_that_make_no_sense) {
  EXPECT_TRUE(TokenWindow{}.validate(100));
  EXPECT_TRUE((TokenWindow{100, 50}.validate(100)));
  EXPECT_TRUE((TokenWindow{16, 0}.validate(100)));
  for (const TokenWindow wrong :
       {TokenWindow{101, 4}, TokenWindow{15, 4}, TokenWindow{-1, 4}, TokenWindow{20, 11}, TokenWindow{20, -1}}) {
    const auto refused = wrong.validate(100);
    ASSERT_FALSE(refused) << wrong.tokens << ", " << wrong.sinks;
    EXPECT_NE(refused.error().message.find(std::to_string(wrong.tokens)), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe
