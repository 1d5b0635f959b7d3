// The template language against Jinja2 3.1.6 in the environment of transformers: tests/data/reference/jinja.jsonl (658
// rows by hand), and tests/data/jinja/random.jsonl (templates made at random).
#include <cstdio>
#include <gtest/gtest.h>

#include "tests/text/template_lab.h"

namespace troupe {
namespace {

using test::read_rows;
using Row = nlohmann::ordered_json;

enum class Verdict { equal, refused, wrong };

Verdict judge(const Row& row, const std::string& context) {
  const auto result = test::render(row["template"], context);
  if (row.contains("error")) {
    if (result) return Verdict::wrong;
    const bool must_match = row["error"]["kind"] == "raise";
    return !must_match || result.error().message.ends_with(row["error"]["message"].get<std::string>()) ? Verdict::equal
                                                                                                       : Verdict::wrong;
  }
  if (!result) return Verdict::refused;
  return result->text() == row["expected"].get<std::string>() ? Verdict::equal : Verdict::wrong;
}

TEST(Jinja, renders_every_reference_row_as_jinja2_does) {
  int equal = 0, refused = 0;
  for (const Row& row : read_rows("reference/jinja.jsonl")) {
    const std::string context = row["context"].dump();
    const Verdict verdict = judge(row, context);
    const bool may_refuse = row["rare"].get<bool>();
    EXPECT_TRUE(verdict == Verdict::equal || (verdict == Verdict::refused && may_refuse))
        << "row " << row["n"] << ": " << row["template"] << "\n  gives " << test::rendered(row["template"], context)
        << "\n  not   " << row.dump();
    equal += verdict == Verdict::equal ? 1 : 0;
    refused += verdict == Verdict::refused ? 1 : 0;
  }
  std::printf("  jinja.jsonl: %d rows equal, %d rare ones refused\n", equal, refused);
  EXPECT_EQ(equal + refused, 658);
  EXPECT_LE(refused, 14);
}

// The language may refuse what Jinja2 renders (a lazy iterator that nobody reads, a list printed as a generator), never
// render something else.
TEST(Jinja, renders_random_templates_as_jinja2_does_or_refuses_them) {
  const auto rows = read_rows("jinja/random.jsonl");
  ASSERT_FALSE(rows.empty());
  const std::string context = rows[0]["context"].dump();
  int equal = 0, refused = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Verdict verdict = judge(rows[i], context);
    EXPECT_NE(verdict, Verdict::wrong) << rows[i].dump() << "\n  gives "
                                       << test::rendered(rows[i]["template"], context);
    (verdict == Verdict::equal ? equal : refused) += 1;
  }
  std::printf("  random.jsonl: %d rows equal, %d refused\n", equal, refused);
  EXPECT_GE(equal, refused * 50);
}

}  // namespace
}  // namespace troupe
