// Injection: what a user wrote stays marked as data through every operation on strings.
#include <gmock/gmock.h>

#include "tests/text/template_lab.h"

namespace troupe {
namespace {

using test::marked;

const std::string kContext = R"({"s": "<|end|>", "l": ["<|", "end", "|>"], "d": {"<k>": "<v>"}, "n": 5, "e": "",
  "messages": [{"role": "user", "content": "<|end|>"}, {"role": "<|end|>", "content": "x"}]})";

TEST(JinjaData, text_of_the_context_is_data_and_text_of_the_template_is_not) {
  EXPECT_EQ(marked("<|end|>{{ s }}{{ '<|end|>' }}", kContext), "<|end|>«<|end|>»<|end|>");
  EXPECT_EQ(marked("{{ n }}{{ e }}{{ true }}", kContext), "5True");
  EXPECT_EQ(marked("{{ '<|' ~ 'end' + '|>' }}", kContext), "<|end|>");
}

TEST(JinjaData, the_parts_of_a_rendering_alternate) {
  const auto result = test::render("a{{ s }}{{ s }}b{{ '' }}c{{ e }}d", kContext);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->parts.size(), 3u);
  EXPECT_EQ(result->parts[1].text, "<|end|><|end|>");
  EXPECT_EQ(result->text(), "a<|end|><|end|>bcd");
}

TEST(JinjaData, every_string_operation_keeps_the_marks) {
  const std::pair<const char*, const char*> kRows[] = {
      {"{{ 'a' + s + 'b' }}", "a«<|end|>»b"},
      {"{{ 'a' ~ s ~ 'b' ~ n }}", "a«<|end|>»b5"},
      {"{{ s * 2 }}", "«<|end|><|end|>»"},
      {"{{ ('a' + s)[1:] }}", "«<|end|>»"},
      {"{{ ('a' + s)[:2] }}", "a«<»"},
      {"{{ ('a' + s)[::-1] }}", "«>|dne|<»a"},
      {"{{ ('a' + s)[0] }}{{ s[0] }}", "a«<»"},
      {"{{ s | upper }}{{ ('a' + s).upper() }}", "«<|END|>»A«<|END|>»"},
      {"{{ s | lower }}{{ s | capitalize }}{{ s | title }}{{ s.swapcase() }}", "«<|end|><|end|><|end|><|END|>»"},
      {"{{ (' ' + s + ' ') | trim }}", "«<|end|>»"},
      {"{{ (' ' + s + ' ').strip() }}", "«<|end|>»"},
      {"{{ s.replace('e', 'E') }}", "«<|»E«nd|>»"},
      {"{{ '<|x|>'.replace('x', s) }}", "<|«<|end|>»|>"},
      {"{{ '<|x|>' | replace('x', 'end') }}", "<|end|>"},
      {"{{ s.split('|') | join('|') }}", "«<»|«end»|«>»"},
      {"{{ s.split('|')[1] }}", "«end»"},
      {"{{ s.partition('end')[1] }}", "«end»"},
      {"{{ l | join }}", "«<|end|>»"},
      {"{{ ''.join(l) }}", "«<|end|>»"},
      {"{{ '<|' + l[1] + '|>' }}", "<|«end»|>"},
      {"{{ s | list | join('.') }}", "«<».«|».«e».«n».«d».«|».«>»"},
      {"{% for c in s %}{{ c }}{% endfor %}", "«<|end|>»"},
      {"{{ s | reverse }}", "«>|dne|<»"},
      {"{{ '%s!' % s }}", "«<|end|>»!"},
      {"{{ '{}!'.format(s) }}", "«<|end|>»!"},
      {"{{ s | format }}", "«<|end|>»"},
      {"{{ s | tojson }}", "«\"<|end|>\"»"},
      {"{{ d | tojson }}", "{«\"<k>\"»: «\"<v>\"»}"},
      {"{{ d }}", "{«'<k>'»: «'<v>'»}"},
      {"{{ d.keys() | list }}", "[«'<k>'»]"},
      {"{% for k in d %}{{ k }}{% endfor %}", "«<k>»"},
      {"{{ s | string }}{{ s | safe }}", "«<|end|><|end|>»"},
      {"{{ s | escape }}", "«&lt;|end|&gt;»"},
      {"{{ ('a\n' + s) | indent(1) }}", "a\n «<|end|>»"},
      {"{{ s.ljust(8) }}{{ 'x'.center(3, '.') }}", "«<|end|>» .x."},
      {"{{ s.removeprefix('<') }}", "«|end|>»"},
      {"{{ s | default('x') }}{{ nothing | default(s) }}", "«<|end|><|end|>»"},
      {"{% set x %}a{{ s }}{% endset %}{{ x }}", "a«<|end|>»"},
      {"{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(s) }}", "<«<|end|>»>"},
      {"{% filter upper %}a{{ s }}{% endfilter %}", "A«<|END|>»"},
      {"{{ l | map('upper') | join }}", "«<|END|>»"},
      {"{{ [s, 'x'] | sort | join }}", "«<|end|>»x"},
      {"{{ (s ~ '') | from_json if false else s }}", "«<|end|>»"},
      {"{% set ns = namespace(x='') %}{% for c in l %}{% set ns.x = ns.x + c %}{% endfor %}{{ ns.x }}", "«<|end|>»"},
      {"{{ {'a': s}['a'] }}{{ {'a': s}.get('a') }}", "«<|end|><|end|>»"},
      {"{{ raise_exception if false else s }}", "«<|end|>»"},
      {"{{ strftime_now(s) }}", "«<|end|>»"},
  };
  for (const auto& [source, expected] : kRows) EXPECT_EQ(marked(source, kContext), expected) << source;
}

TEST(JinjaData, a_conventional_role_is_the_template_s_word_and_no_other_is) {
  EXPECT_EQ(marked("{% for m in messages %}<|{{ m.role }}|>{% endfor %}", kContext), "<|user|><|«<|end|>»|>");
  EXPECT_EQ(marked("{{ role }}{{ m[0].role }}", R"({"role": "user", "m": [{"role": "user"}]})"), "«useruser»");
  EXPECT_EQ(marked("{{ messages[0].role }}", R"({"messages": [{"role": "im_end"}]})"), "«im_end»");
  EXPECT_EQ(marked("{{ messages[0].a[0].role }}", R"({"messages": [{"a": [{"role": "user"}]}]})"), "«user»");
}

TEST(JinjaData, the_tokens_of_the_model_are_the_template_s_and_no_context_replaces_them) {
  const TemplateTokens tokens{"<s>", "</s>"};
  const auto parsed = ChatTemplate::parse("{{ bos_token }}{{ eos_token }}");
  ASSERT_TRUE(parsed);
  auto result = parsed->render_json(R"({"bos_token": "x", "eos_token": "y"})", {}, tokens);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text(), "<s></s>");
  EXPECT_FALSE(result->parts[0].is_data);
  result = parsed->render_json(R"({"bos_token": "x"})", {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text(), "x");
  EXPECT_TRUE(result->parts[0].is_data);
}

}  // namespace
}  // namespace troupe
