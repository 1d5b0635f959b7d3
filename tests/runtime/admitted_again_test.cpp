// Admission: who is let in when pages are short, and who may not be turned away any more.
#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/admission.h"
#include "tests/runtime/pool_of.h"

namespace troupe {
namespace {

using test::pool_of;

// A line before a small pool; nothing is shared.
class SmallLine {
 public:
  explicit SmallLine(std::int64_t pages)
      : pool_(pool_of(pages)), line_(pool_, std::make_shared<PrefixIndex>(pool_, 0)) {}

  // What became of the request so far: nothing while it waits.
  std::shared_ptr<std::optional<Result<PageGrant>>> ask(SessionId session, std::int64_t tokens) {
    auto answer = std::make_shared<std::optional<Result<PageGrant>>>();
    PageRequest request{session, 1, "", std::make_shared<std::vector<TokenId>>(1, 7), std::make_shared<KvCache>(pool_),
                        tokens};
    line_.push(std::move(request), TimePoint::max(), [answer](Result<PageGrant> grant) { *answer = std::move(grant); });
    return answer;
  }
  Admission& operator*() { return line_; }

 private:
  std::shared_ptr<PagePool> pool_;
  Admission line_;
};

TEST(AdmittedAgain, a_turn_that_was_let_in_is_not_turned_away_by_a_full_line_when_it_asks_again) {
  SmallLine line(2);
  auto first = line.ask(1, 32);
  ASSERT_TRUE(*first && **first);
  constexpr auto kOfOneKey = Admission::kLineLimit / 2;
  std::vector<decltype(first)> waiting;
  for (int i = 0; i < kOfOneKey; ++i) waiting.push_back(line.ask(100 + i, 32));
  EXPECT_TRUE(std::ranges::none_of(waiting, [](const auto& answer) { return answer->has_value(); }));
  const auto refused = line.ask(2, 32);
  ASSERT_TRUE(*refused);
  EXPECT_EQ((**refused).error().code, ErrorCode::overloaded);
  first->reset();
  const auto again = line.ask(1, 32);
  EXPECT_FALSE(*again) << "waits for its turn";
  EXPECT_TRUE(*waiting.front() && **waiting.front());
  waiting.clear();
  for (int i = 0; i < kOfOneKey; ++i) (*line).leave(100 + i);
  ASSERT_TRUE(*again);
  EXPECT_TRUE(**again);
}

TEST(AdmittedAgain, what_can_never_fit_is_refused_with_both_numbers_whoever_asks) {
  SmallLine line(2);
  ASSERT_TRUE(*line.ask(1, 32));
  const auto refused = line.ask(1, 48);
  ASSERT_TRUE(*refused);
  EXPECT_EQ((**refused).error().code, ErrorCode::out_of_memory);
  EXPECT_NE((**refused).error().message.find("3 pages"), std::string::npos);
}

}  // namespace
}  // namespace troupe
