// What is not a template, what is outside the subset, and what fails while rendering: refused with line and construct.
#include <gmock/gmock.h>

#include "tests/text/template_lab.h"

namespace troupe {
namespace {

using test::rendered;
using ::testing::HasSubstr;

Error parse_error(const std::string& source) {
  const auto parsed = ChatTemplate::parse(source);
  EXPECT_FALSE(parsed) << source;
  return parsed ? Error{} : parsed.error();
}

TEST(JinjaErrors, malformed_templates_are_refused) {
  const char* kSources[] = {
      "{{",
      "{{ x",
      "{{ x }",
      "{{ }}",
      "{%",
      "{% if %}",
      "{% if x %}",
      "{% if x %}{% else %}",
      "{% if x %}{% else %}{% else %}{% endif %}",
      "{% endif %}",
      "{% elif x %}",
      "{% for %}{% endfor %}",
      "{% for x %}{% endfor %}",
      "{% for x in y %}",
      "{% for x in y %}{% endif %}",
      "{% for 1 in y %}{% endfor %}",
      "{% set %}",
      "{% set true = 1 %}",
      "{% set x = %}",
      "{% set x %}",
      "{% macro %}{% endmacro %}",
      "{% macro f(a=1, b) %}{% endmacro %}",
      "{% macro f( %}{% endmacro %}",
      "{% nonsense %}",
      "{% break %}",
      "{# never closed",
      "{% raw %}{{ x }}",
      "{{ 'never closed }}",
      "{{ [1, 2 }}",
      "{{ (1 }}",
      "{{ {'a': 1, 'b'} }}",
      "{{ x. }}",
      "{{ x[ }}",
      "{{ x[] }}",
      "{{ x | }}",
      "{{ x is }}",
      "{{ x is defined is none }}",
      "{{ 1 + }}",
      "{{ a b }}",
      "{{ a(b=1, 2) }}",
      "{{ '\\u12' }}",
      "{{ '\\ud800' }}",
      "{{ \x01 }}",
      "{{ $ }}",
      "{{ 1e999 }}",
      "{% for x in y %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}",
  };
  for (const char* source : kSources) {
    const Error error = parse_error(source);
    EXPECT_EQ(error.code, ErrorCode::bad_input) << source;
    EXPECT_THAT(error.message, HasSubstr("line 1")) << source;
  }
}

TEST(JinjaErrors, a_source_that_is_not_utf8_is_refused) {
  EXPECT_THAT(parse_error("ab\xff").message, HasSubstr("not UTF-8 at byte 2"));
}

TEST(JinjaErrors, what_the_subset_has_not_is_named_with_its_line) {
  const std::pair<const char*, const char*> kRows[] = {
      {"\n{% include 'x' %}", "the tag 'include'"},         {"\n{% extends 'x' %}", "the tag 'extends'"},
      {"\n{% block x %}{% endblock %}", "the tag 'block'"}, {"\n{{ x | nofilter }}", "no filter named 'nofilter'"},
      {"\n{{ x is notest }}", "no test named 'notest'"},    {"\n{{ f(*x) }}", "'*' in the arguments"},
      {"\n{{ x[1, 2] }}", "a subscript with commas"},
  };
  for (const auto& [source, construct] : kRows) {
    const Error error = parse_error(source);
    EXPECT_EQ(error.code, ErrorCode::unsupported) << source;
    EXPECT_THAT(error.message, HasSubstr("line 2")) << source;
    EXPECT_THAT(error.message, HasSubstr(construct)) << source;
  }
}

TEST(JinjaErrors, a_failing_rendering_names_line_and_construct) {
  const std::pair<const char*, const char*> kRows[] = {
      {"a\nb{{ nowhere.x }}", "line 2, attribute 'x' failed: 'nowhere' is undefined"},
      {"\n\n{{ 1 | length }}", "line 3, filter 'length' failed: object of type 'int' has no len()"},
      {"{{ 'a' +\n 1 }}", "line 1, operator '+' failed: can only concatenate str (not \"int\") to str"},
      {"{{ nowhere() }}", "line 1, call failed: 'nowhere' is undefined"},
      {"{{ [1].append(2) }}", "access to attribute 'append' of 'list' object is unsafe"},
      {"{{ {}.update({}) }}", "access to attribute 'update' of 'dict' object is unsafe"},
      {"{{ ''.__class__.x }}", "access to attribute '__class__' of 'str' object is unsafe"},
      {"{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}", "line 2, call failed: macro 'f' takes not more than 1"},
      {"{% for a, b in [[1]] %}{% endfor %}", "cannot unpack 1 values into 2 names"},
      {"{{ 9223372036854775807 + 1 }}", "not supported: an integer result of more than 64 bits"},
      {"{{ -9223372036854775807 - 1 - 1 }}", "not supported: an integer result of more than 64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "not supported: an integer result of more than 64 bits"},
      {"{{ 12345678901234567890 + 1 }}", "not supported: integers of more than 64 bits"},
      {"{{ range }}", "not supported: printing an object"},
      {"{{ range(3) }}", "not supported: printing a range"},
      {"{{ cycler('a') }}", "not supported: 'cycler'"},
      {"{{ 'é'.isalpha() }}", "not supported: the classes of letters outside ASCII"},
      {"{{ strftime_now('%Q') }}", "not supported: the time directive '%Q'"},
  };
  for (const auto& [source, message] : kRows) EXPECT_THAT(rendered(source), HasSubstr(message)) << source;
}

TEST(JinjaErrors, the_template_s_own_refusal_is_the_end_of_the_message) {
  const auto result = test::render("\n{{ raise_exception('roles ' ~ 1) }}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_input);
  EXPECT_EQ(result.error().message, "the chat template, line 2, call, refuses this conversation: roles 1");
}

TEST(JinjaErrors, malformed_contexts_are_refused) {
  for (const char* context :
       {"", "[]", "1", "{", "{\"a\":}", "{\"a\": \"\xff\"}", "{\"a\": \"\\ud800\"}", "{\"a\": 1e999}"}) {
    EXPECT_THAT(rendered("x", context), HasSubstr("the context of the chat template")) << context;
  }
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_THAT(rendered("x", "{\"a\":" + deep + "}"), HasSubstr("nested more than 128 levels"));
}

TEST(JinjaErrors, without_a_clock_the_time_is_undefined) {
  auto parsed = ChatTemplate::parse("{{ strftime_now('%Y') if strftime_now is defined else 'no clock' }}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->render_json("{}", {})->text(), "no clock");
}

}  // namespace
}  // namespace troupe
