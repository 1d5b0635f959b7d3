// Templates that would never end, or never fit: refused within their budget.
#include <chrono>
#include <cstdio>
#include <gmock/gmock.h>

#include "tests/text/template_lab.h"

namespace troupe {
namespace {

using test::rendered;
using ::testing::HasSubstr;

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// 2^40 bytes of it.
const std::string kDoubling =
    "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = ns.x DOUBLED %}{% endfor %}{{ ns.x | length "
    "}}";

std::string doubling(const std::string& how) {
  std::string source = kDoubling;
  source.replace(source.find("DOUBLED"), 7, how);
  return source;
}

TEST(JinjaBudget, endless_work_is_stopped_in_time) {
  const std::string sources[] = {
      "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
      "{% for i in range(100000) %}{% if 'x' in messages %}{% endif %}{{ [0] * 1000 }}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
      "{% macro f() %}{% call f() %}{% endcall %}{{ caller }}{% endmacro %}{{ f() }}",
      "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
      doubling("+ ns.x"),
      doubling("~ ns.x"),
      doubling("* 2"),
      doubling(".replace('a', 'aa')"),
      doubling("| replace('b', 'bb')"),
      doubling("| tojson"),
      "{{ 'x' * 1000000000 }}",
      "{{ 1000000000 * 'x' }}",
      "{{ [0] * 1000000000 }}",
      "{{ 'x'.center(1000000000000) }}",
      "{{ 'x'.zfill(1000000000000) }}",
      "{{ 'x'.ljust(9000000000000000000) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1 }}",
      "{{ 'x' | indent(1000000000, true) }}",
      "{{ [[1]] | tojson(indent=1000000000) }}",
      "{{ range(1000000000) | list }}",
      "{{ range(0, -9000000000000000000, -1) | list }}",
      "{{ 2 ** 1000000000000 }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(20000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(20000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(20000) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}"
      "{% endfor %}{{ ns.x == ns.y }}",
  };
  double longest = 0.0;
  for (const std::string& source : sources) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = rendered(source);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_TRUE(text.starts_with("error: ")) << source << " gives " << text.substr(0, 100);
    longest = std::max(longest, seconds);
    EXPECT_LT(seconds, 10.0) << source;  // a hang, whatever the machine; the figure is printed
  }
  std::printf("  longest of %zu: %.0f ms\n", std::size(sources), longest * 1e3);
}

TEST(JinjaBudget, every_limit_has_its_own_sentence) {
  RenderBudget budget;
  budget.steps = 1000;
  EXPECT_THAT(rendered("{% for i in range(2000) %}{% endfor %}", "{}", budget),
              HasSubstr("takes more than 1000 steps"));
  EXPECT_EQ(rendered("{% for i in range(100) %}{% endfor %}", "{}", budget), "");
  budget = {};
  budget.output_bytes = 10;
  EXPECT_EQ(rendered("{{ 'x' * 10 }}", "{}", budget), "xxxxxxxxxx");
  EXPECT_THAT(rendered("{{ 'x' * 11 }}", "{}", budget), HasSubstr("writes more than 10 bytes"));
  budget = {};
  budget.memory_bytes = 10'000;
  EXPECT_THAT(rendered("{{ 'x' * 10000 }}", "{}", budget), HasSubstr("needs more than 10000 bytes of memory"));
  EXPECT_THAT(rendered("", "{\"a\": \"" + std::string(20'000, 'x') + "\"}", budget), HasSubstr("bytes of memory"));
  budget = {};
  budget.depth = 3;
  const std::string three = "{% macro f(n) %}{% if n %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}";
  EXPECT_EQ(rendered(three + "{{ f(2) }}", "{}", budget), "21");
  EXPECT_THAT(rendered(three + "{{ f(3) }}", "{}", budget), HasSubstr("macros within macros deeper than allowed"));
}

TEST(JinjaBudget, deep_nesting_of_the_source_is_refused_not_overflowed) {
  const int kDeep = 20'000;
  const std::string sources[] = {
      "{{ " + repeated("(", kDeep) + "1" + repeated(")", kDeep) + " }}",
      "{{ " + repeated("[", kDeep) + "1" + repeated("]", kDeep) + " }}",
      "{{ " + repeated("{1:", kDeep) + "1" + repeated("}", kDeep) + " }}",
      "{{ " + repeated("not ", kDeep) + "1 }}",
      "{{ " + repeated("-", kDeep) + "1 }}",
      "{{ " + repeated("1 if 1 else ", kDeep) + "1 }}",
      "{{ x" + repeated("[x", kDeep) + repeated("]", kDeep) + " }}",
      "{{ x" + repeated("(x", kDeep) + repeated(")", kDeep) + " }}",
      repeated("{% if 1 %}", kDeep) + repeated("{% endif %}", kDeep),
      repeated("{% for x in y %}", kDeep / 2) + repeated("{% endfor %}", kDeep / 2),
      repeated("{% set x %}", kDeep / 2) + repeated("{% endset %}", kDeep / 2),
      "{% for " + repeated("(", kDeep) + "x" + repeated(")", kDeep) + " in y %}{% endfor %}",
      std::string(300'000, 'x'),
  };
  for (const std::string& source : sources) EXPECT_FALSE(ChatTemplate::parse(source)) << source.substr(0, 30);
}

// Chains that the parser reads in a loop are trees as deep as they are long.
TEST(JinjaBudget, long_chains_are_rendered_or_refused) {
  const int kLong = 20'000;
  EXPECT_EQ(rendered("{{ 1" + repeated("+1", kLong) + " }}"), std::to_string(kLong + 1));
  EXPECT_EQ(rendered("{{ ''" + repeated("~'a'", kLong) + " }}").size(), static_cast<std::size_t>(kLong));
  EXPECT_EQ(rendered("{{ 0" + repeated(" or 0", kLong) + " }}"), "0");
  EXPECT_EQ(rendered("{{ 1" + repeated(" < 2", 1) + repeated(" == 2", kLong) + " }}"), "True");
  for (const char* link : {" if 1", " is eq 2", "-1", "*1", ".a", "|trim", "[0]", "()", "**1"}) {
    EXPECT_THAT(rendered("{{ x" + repeated(link, kLong) + " }}"), HasSubstr("nested more than 1000 levels")) << link;
  }
}

TEST(JinjaBudget, what_holds_itself_is_freed) {
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.self = ns %}{% set ns.list = [ns] %}x"), "x");
  EXPECT_EQ(rendered("{% macro f() %}{% set g = f %}x{% endmacro %}{% set h = f %}{{ f() }}"), "x");
}

TEST(JinjaBudget, a_long_conversation_fits) {
  std::string context = "{\"add_generation_prompt\": true, \"messages\": [";
  for (int i = 0; i < 2000; ++i) {
    if (i > 0) context += ",";
    context += R"({"role": "user", "content": ")" + std::string(4000, 'x') + "\"}";
  }
  context += "]}";
  const std::string text = rendered(
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] | trim + '<|im_end|>' + '\\n' }}"
      "{% endfor %}",
      context);
  EXPECT_EQ(text.size(), 2000u * (4000 + 12 + 4 + 1 + 10 + 1));
}

}  // namespace
}  // namespace troupe
