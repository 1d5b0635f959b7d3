// read_text_side: what a file's text side becomes, and what a user's own template does.
#include "runtime/text_side.h"

#include <gmock/gmock.h>

#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

using ::testing::HasSubstr;

// The image's bytes must outlive what is read from them.
struct Read {
  explicit Read(const GgufImage& image, const std::string& own = "") : bytes(image.bytes()), side(read(bytes, own)) {}
  static Result<TextSide> read(const std::string& bytes, const std::string& own) {
    auto file = Gguf::parse(std::as_bytes(std::span(bytes)));
    if (!file) return file.error();
    return read_text_side(*file, own);
  }
  std::string bytes;
  Result<TextSide> side;
};

std::string rendered(const TextSide& side) {
  const Message hello{"user", "hello"};
  const auto text = side.chat_template->render(std::span(&hello, 1), true, {});
  return text ? text->text() : text.error().message;
}

GgufImage tiny() {
  return tiny_model_image(tiny_model(DType::q4_0));
}

TEST(TextSide, a_file_without_a_template_says_how_to_give_one) {
  TinyModel model = tiny_model(DType::q4_0);
  model.chat_template = "";
  const Read one(tiny_model_image(model));
  ASSERT_TRUE(one.side) << one.side.error().message;
  EXPECT_EQ(one.side->chat_template, nullptr);
  EXPECT_THAT(one.side->template_error.message, HasSubstr("--chat-template"));
}

TEST(TextSide, a_template_of_the_wrong_type_is_not_called_missing) {
  GgufImage image = tiny();
  image.set("tokenizer.chat_template", 7u);
  const Read one(image);
  ASSERT_TRUE(one.side) << one.side.error().message;
  EXPECT_EQ(one.side->chat_template, nullptr);
  EXPECT_THAT(one.side->template_error.message, HasSubstr("tokenizer.chat_template has type u32"));
}

TEST(TextSide, an_own_template_replaces_the_files) {
  const Read one(tiny(), "[{{ messages[0].content }}]");
  ASSERT_TRUE(one.side) << one.side.error().message;
  EXPECT_EQ(rendered(*one.side), "[hello]");
}

TEST(TextSide, an_own_template_that_does_not_parse_is_an_error_with_its_line) {
  const Read one(tiny(), "\n{% if %}");
  ASSERT_FALSE(one.side);
  EXPECT_THAT(one.side.error().message, HasSubstr("--chat-template"));
  EXPECT_THAT(one.side.error().message, HasSubstr("line 2"));
}

TEST(TextSide, templates_know_the_date) {
  const Read one(tiny(), "{{ strftime_now('%Y') | length }}");
  ASSERT_TRUE(one.side) << one.side.error().message;
  EXPECT_EQ(rendered(*one.side), "4");
}

}  // namespace
}  // namespace troupe::test
