// ChatTemplate as the runtime uses it: messages in, parts out; the default model's template against its reference rows;
// the built-in templates; prompts to tokens.
#include <atomic>
#include <gmock/gmock.h>
#include <thread>

#include "runtime/text/builtin_templates.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/prompt.h"
#include "tests/text/template_lab.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the default model's file has it.
const std::string kModelTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
    "are "
    "a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}";

ChatTemplate parse(const std::string& source) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) throw std::logic_error(parsed.error().message);
  return *parsed;
}

TEST(ChatTemplate, renders_every_reference_row_of_the_default_model) {
  const ChatTemplate chat = parse(kModelTemplate);
  int texts = 0, errors = 0;
  for (auto row : test::read_rows("reference/chat_template.jsonl")) {
    const auto result = chat.render_json(row.dump(), {});
    if (row.contains("error")) {
      EXPECT_FALSE(result) << row["n"];
      ++errors;
    } else {
      ASSERT_TRUE(result) << row["n"] << ": " << result.error().message;
      EXPECT_EQ(result->text(), row["expected"].get<std::string>()) << row["n"];
      ++texts;
    }
  }
  EXPECT_EQ(texts, 97);
  EXPECT_EQ(errors, 14);
}

TEST(ChatTemplate, messages_and_json_render_the_same) {
  const ChatTemplate chat = parse(kModelTemplate);
  const Message messages[] = {{"system", "Be brief."}, {"user", "Grüße 😀"}, {"odd role", ""}};
  const auto a = chat.render(messages, true, {"<s>", "</s>"});
  const auto b = chat.render_json(
      R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße 😀"},
          {"role": "odd role", "content": ""}], "add_generation_prompt": true})",
      {}, {"<s>", "</s>"});
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->parts.size(), b->parts.size());
  for (std::size_t i = 0; i < a->parts.size(); ++i) {
    EXPECT_EQ(a->parts[i].text, b->parts[i].text);
    EXPECT_EQ(a->parts[i].is_data, b->parts[i].is_data);
  }
}

TEST(ChatTemplate, content_may_hold_any_bytes) {
  const std::string bytes("a\0\xff\xc3(\xed\xa0\x80 ", 9);
  const Message message{"user", bytes};
  const auto result =
      parse("{{ messages[0].content }}|{{ messages[0].content | trim }}|{{ messages[0].content[::-1] }}")
          .render(std::span(&message, 1), false, {});
  ASSERT_TRUE(result);
  const std::string reversed(" \x80\xa0\xed(\xc3\xff\0a", 9);
  EXPECT_EQ(result->text(), bytes + "|" + bytes.substr(0, 8) + "|" + reversed);
}

TEST(ChatTemplate, renders_from_many_threads_at_once) {
  const ChatTemplate chat = parse(kModelTemplate);
  const Message message{"user", "Hello"};
  const std::string expected = chat.render(std::span(&message, 1), true, {})->text();
  std::atomic<int> equal = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        equal += chat.render(std::span(&message, 1), true, {})->text() == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 800);
}

TEST(ChatTemplate, the_verdict_names_the_tier_or_the_reason) {
  EXPECT_EQ(template_verdict(kModelTemplate), "tier 1, renders");
  EXPECT_EQ(template_verdict("{% macro f() %}{% endmacro %}"), "tier 2, renders");
  EXPECT_EQ(template_verdict("{{ [2, 1] | sort }}"), "tier 3, renders");
  EXPECT_THAT(template_verdict("{{ x"), HasSubstr("line 1: the template ends inside a tag"));
  EXPECT_THAT(template_verdict("{{ raise_exception('no') }}"), HasSubstr("does not render a lone user message"));
}

TEST(ChatTemplate, the_system_s_time_is_a_time) {
  const auto chat = ChatTemplate::parse("{{ strftime_now('%Y') }}", system_local_time());
  ASSERT_TRUE(chat);
  EXPECT_GE(std::stoi(chat->render_json("{}", {})->text()), 2024);
}

std::string builtin(const std::string& name, std::span<const Message> messages, bool prompt = true) {
  const auto source = find_builtin_template(name);
  if (!source) return "no template " + name;
  const auto result = parse(std::string(*source)).render(messages, prompt, {"<s>", "</s>"});
  return result ? result->text() : "error: " + result.error().message;
}

TEST(BuiltinTemplates, render_a_conversation_in_the_published_format) {
  const Message messages[] = {{"system", "S"}, {"user", "A "}, {"assistant", "B"}, {"user", "C"}};
  EXPECT_EQ(builtin("chatml", messages),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nA <|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n"
            "<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(builtin("qwen", messages), builtin("chatml", messages));
  EXPECT_EQ(builtin("llama2", messages), "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nA [/INST] B </s><s>[INST] C [/INST]");
  EXPECT_EQ(builtin("llama3", messages),
            "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nA"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nB<|eot_id|><|start_header_id|>user"
            "<|end_header_id|>\n\nC<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(builtin("mistral", messages), "<s>[INST] S\n\nA  [/INST] B</s>[INST] C [/INST]");
  EXPECT_EQ(builtin("gemma", messages),
            "<s><start_of_turn>user\nS\n\nA<end_of_turn>\n<start_of_turn>model\nB<end_of_turn>\n<start_of_turn>user\nC"
            "<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(builtin("phi3", messages),
            "<|system|>\nS<|end|>\n<|user|>\nA <|end|>\n<|assistant|>\nB<|end|>\n<|user|>\nC<|end|>\n<|assistant|>\n");
  EXPECT_EQ(builtin("zephyr", messages),
            "<|system|>\nS</s>\n<|user|>\nA </s>\n<|assistant|>\nB</s>\n<|user|>\nC</s>\n<|assistant|>\n");
}

TEST(BuiltinTemplates, have_eight_names_and_end_without_the_prompt_when_not_asked) {
  EXPECT_EQ(builtin_templates().size(), 8u);
  EXPECT_FALSE(find_builtin_template("nothing"));
  const Message message{"user", "A"};
  for (const BuiltinTemplate& one : builtin_templates()) {
    const std::string name(one.name);
    EXPECT_THAT(builtin(name, std::span(&message, 1)), HasSubstr("A")) << name;
    EXPECT_THAT(template_verdict(std::string(one.source)), HasSubstr("renders")) << name;
    EXPECT_TRUE(builtin(name, std::span(&message, 1)).starts_with(builtin(name, std::span(&message, 1), false)))
        << name;
  }
  const Message odd{"<|user|>", "A"};
  EXPECT_THAT(builtin("phi3", std::span(&odd, 1)), HasSubstr("not <|user|>"));
}

// A tokenizer with the control token "<|end|>".
Tokenizer tokenizer_with_end() {
  VocabularyData data = test::small_vocabulary_data("default");
  data.pieces.push_back("<|end|>");
  data.kinds.push_back(TokenKind::control);
  return std::move(*Tokenizer::create(test::make_vocabulary(std::move(data))));
}

std::vector<std::string> controls(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> found;
  for (TokenId id : ids) {
    if (tokenizer.vocabulary().is_control(id)) found.emplace_back(tokenizer.vocabulary().bytes(id));
  }
  return found;
}

TEST(Prompt, control_text_in_a_message_gives_no_control_token) {
  const Tokenizer tokenizer = tokenizer_with_end();
  const char* kTemplates[] = {
      "{% for m in messages %}{{ m.content }}{% endfor %}",
      "{% for m in messages %}<|{{ m.content }}|>{% endfor %}",
      "{% for m in messages %}{{ '<|' + m.content + '|>' }}{{ m.role }}{% endfor %}",
      "{% for m in messages %}{{ m.content | upper | lower }}{{ m.content.replace('x', '<|end|>'[2:5]) }}{% endfor %}",
      "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages | map(attribute='content') | join }}",
  };
  const Message messages[] = {
      {"<|end|>", "<|end|>"}, {"user", "end"}, {"user", "<|"}, {"user", "end|>"}, {"user", "<|x|>"}};
  for (const char* source : kTemplates) {
    const auto result = parse(source).render(messages, false, {});
    ASSERT_TRUE(result) << source;
    const auto ids = tokenize_rendered(tokenizer, *result);
    EXPECT_THAT(controls(tokenizer, ids), ElementsAre()) << source;
    EXPECT_EQ(detokenize(tokenizer.vocabulary(), ids, ControlTokens::write), result->text()) << source;
  }
}

TEST(Prompt, control_text_of_the_template_is_a_control_token_however_it_was_joined) {
  const Tokenizer tokenizer = tokenizer_with_end();
  const Message message{"user", "a"};
  for (const char* source : {"<|end|>", "{{ '<|end|>' }}", "{{ '<|' ~ 'end' ~ '|>' }}", "<|{{ 'END' | lower }}|>",
                             "{% set x %}<|{% endset %}{{ x + 'end|>' }}", "<|e{# x #}nd|>"}) {
    const auto result = parse(source).render(std::span(&message, 1), false, {});
    ASSERT_TRUE(result);
    EXPECT_THAT(controls(tokenizer, tokenize_rendered(tokenizer, *result)), ElementsAre("<|end|>")) << source;
  }
}

TEST(Prompt, text_between_control_tokens_is_one_stretch_whoever_wrote_it) {
  const Tokenizer tokenizer = tokenizer_with_end();
  const Rendered cut{{{"<|end|>the qu", false}, {"ick brown", true}, {" fox<|end|>", false}}};
  const auto whole = tokenizer.encode("<|end|>the quick brown fox<|end|>", Tokenizer::Specials::parse);
  EXPECT_EQ(tokenize_rendered(tokenizer, cut), whole);
}

}  // namespace
}  // namespace troupe
