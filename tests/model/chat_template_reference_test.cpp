// The default model's chat template and tokenizer together against tests/data/reference/chat_template.jsonl (texts by
// jinja2 3.1.6, ids by `tokenizers` 0.23.3 with control text parsed everywhere). TROUPE_MODEL names the model file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/load/vocabulary_data.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/prompt.h"

namespace troupe {
namespace {

using nlohmann::ordered_json;

struct Model {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat;
};

void open_model(Model& model) {
  const char* path = std::getenv("TROUPE_MODEL");
  ASSERT_NE(path, nullptr) << "set TROUPE_MODEL to the default model's file";
  auto file = Gguf::open(path);
  ASSERT_TRUE(file) << file.error().message;
  auto data = read_vocabulary(*file);
  ASSERT_TRUE(data) << data.error().message;
  auto vocabulary = Vocabulary::create(std::move(*data));
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  model.vocabulary = std::make_shared<const Vocabulary>(std::move(*vocabulary));
  auto tokenizer = Tokenizer::create(model.vocabulary);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  model.tokenizer = std::make_unique<Tokenizer>(std::move(*tokenizer));
  auto source = file->get_string("tokenizer.chat_template");
  ASSERT_TRUE(source) << source.error().message;
  auto chat = ChatTemplate::parse(*source);
  ASSERT_TRUE(chat) << chat.error().message;
  model.chat = std::make_unique<ChatTemplate>(std::move(*chat));
}

std::ptrdiff_t controls_in(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  return std::ranges::count_if(ids, [&](TokenId id) { return vocabulary.is_control(id); });
}

// How many control tokens the template itself wrote, and whether a message holds the text of one.
struct Wrote {
  std::ptrdiff_t by_template = 0;
  bool by_message = false;
};

Wrote control_text(const Model& model, const Rendered& rendered) {
  Wrote wrote;
  for (const RenderedPart& part : rendered.parts) {
    const auto ids = model.tokenizer->encode(part.text, Tokenizer::Specials::parse);
    const std::ptrdiff_t count = controls_in(*model.vocabulary, ids);
    if (part.is_data) {
      wrote.by_message = wrote.by_message || count > 0;
    } else {
      wrote.by_template += count;
    }
  }
  return wrote;
}

TEST(ChatTemplateReference, texts_and_ids_of_every_row) {
  Model model;
  open_model(model);
  if (HasFatalFailure()) return;
  int equal = 0, injected = 0, refused = 0;
  std::ifstream file(TROUPE_TEST_DATA "/reference/chat_template.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto row = ordered_json::parse(line);
    const auto rendered = model.chat->render_json(line, {});
    EXPECT_EQ(rendered.ok(), !row.contains("error")) << line;
    if (!rendered) {
      ++refused;
      continue;
    }
    EXPECT_EQ(rendered->text(), row["expected"].get<std::string>()) << line;
    const auto ids = tokenize_rendered(*model.tokenizer, *rendered);
    const Wrote wrote = control_text(model, *rendered);
    EXPECT_EQ(controls_in(*model.vocabulary, ids), wrote.by_template) << line;
    if (wrote.by_message) {
      ++injected;
      EXPECT_EQ(detokenize(*model.vocabulary, ids, ControlTokens::write), rendered->text()) << line;
    } else {
      ++equal;
      EXPECT_EQ(ids, row["ids"].get<std::vector<TokenId>>()) << line;
    }
  }
  std::printf("  chat_template.jsonl: %d rows with equal ids, %d with control text in a message, %d refused\n", equal,
              injected, refused);
  EXPECT_EQ(equal + injected, 97);
  EXPECT_EQ(refused, 14);
  EXPECT_GT(injected, 0);
}

}  // namespace
}  // namespace troupe
