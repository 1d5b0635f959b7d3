#include "runtime/text/stop_matcher.h"

#include <gmock/gmock.h>
#include <stdexcept>

#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::size_t> match;
  bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << '"' << outcome.text << "\" match " << (outcome.match ? std::to_string(*outcome.match) : "none");
}

// The definition: the stop string that ends first; of those the longest.
Outcome by_definition(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), end - longest};
  }
  return {text, std::nullopt};
}

Outcome in_parts(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
  StopMatcher matcher(stops);
  std::string out;
  for (const std::string& part : parts) {
    out += matcher.push(part);
    if (matcher.match()) break;
  }
  out += matcher.flush();
  return {out, matcher.match()};
}

TEST(StopMatcher, holds_back_exactly_what_could_become_a_stop_string) {
  StopMatcher matcher({"\nUser:", "###"});
  EXPECT_EQ(matcher.push("Hi\nUs"), "Hi");
  EXPECT_EQ(matcher.push("ual\n#"), "\nUsual\n");
  EXPECT_EQ(matcher.push("#"), "");
  EXPECT_EQ(matcher.push(" "), "## ");
  EXPECT_EQ(matcher.push("x\n"), "x");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("User: more"), "");
  EXPECT_EQ(matcher.match(), 13u);
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, gives_back_what_it_held_at_the_end) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.push("a STO"), "a ");
  EXPECT_EQ(matcher.flush(), "STO");
  EXPECT_EQ(matcher.match(), std::nullopt);
}

TEST(StopMatcher, without_stop_strings_everything_passes) {
  for (const std::vector<std::string>& stops : {std::vector<std::string>{}, std::vector<std::string>{"", ""}}) {
    StopMatcher matcher(stops);
    EXPECT_EQ(matcher.push("any"), "any");
    EXPECT_EQ(matcher.push(" text"), " text");
    EXPECT_EQ(matcher.match(), std::nullopt);
  }
}

TEST(StopMatcher, equals_the_definition_at_every_cut) {
  test::Random random(6);
  for (int round = 0; round < (test::small_scale() ? 200 : 4000); ++round) {
    std::vector<std::string> stops;
    for (std::int64_t i = random.below(4); i >= 0; --i) {
      stops.push_back(test::random_text(random, "ab\xc3", static_cast<std::size_t>(random.below(6))));
    }
    const std::string text = test::random_text(random, "aab\xc3", static_cast<std::size_t>(random.below(20)));
    const Outcome expected = by_definition(stops, text);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(in_parts(stops, {text.substr(0, cut), text.substr(cut)}), expected) << text << " cut at " << cut;
    }
    std::vector<std::string> bytes;
    for (char c : text) bytes.emplace_back(1, c);
    ASSERT_EQ(in_parts(stops, bytes), expected) << text;
  }
}

TEST(StopMatcher, never_releases_a_byte_early) {
  // What is released must be right whatever follows: so it may reach no further than every possible future's match.
  test::Random random(7);
  for (int round = 0; round < (test::small_scale() ? 50 : 500); ++round) {
    const std::vector<std::string> stops = {test::random_text(random, "ab", 4), test::random_text(random, "ab", 3)};
    const std::string text = test::random_text(random, "ab", static_cast<std::size_t>(random.below(10)));
    StopMatcher matcher(stops);
    const std::string released = matcher.push(text);
    for (unsigned future = 0; future < 8 && !matcher.match(); ++future) {
      std::string whole = text;
      for (int bit = 0; bit < 3; ++bit) whole += (future >> bit & 1) != 0 ? 'b' : 'a';
      const Outcome outcome = by_definition(stops, whole);
      ASSERT_LE(released.size(), outcome.text.size()) << text;
    }
  }
}

TEST(StopMatcher, refuses_bytes_after_a_match) {
  StopMatcher matcher({"x"});
  EXPECT_EQ(matcher.push("ax"), "a");
  EXPECT_THROW(matcher.push("b"), std::logic_error);
}

TEST(StopMatcher, long_stop_strings_cost_one_step_a_byte) {
  // Comparing anew at each byte would be 10^12 steps here.
  const std::size_t size = 1 << 20;
  StopMatcher matcher({std::string(size, 'a') + 'b'});
  EXPECT_EQ(matcher.push(std::string(2 * size, 'a')).size(), size);
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_EQ(matcher.match(), size);
}

}  // namespace
}  // namespace troupe
