#include "runtime/load/inspect.h"

#include <gmock/gmock.h>

#include "runtime/text/utf8.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string describe_image(const GgufImage& image, const InspectOptions& options = {}) {
  const std::string bytes = image.bytes();
  const auto file = Gguf::parse(std::as_bytes(std::span(bytes)));
  if (!file) return "refused: " + file.error().message;
  return describe(*file, options);
}

TEST(Inspect, shows_metadata_tensors_sizes_and_context) {
  TinyModel model = tiny_model(DType::q4_1);
  EXPECT_THAT(describe_image(tiny_model_image(model)),
              AllOf(HasSubstr("version 3"), HasSubstr("llama.block_count"), HasSubstr("smollm"),
                    HasSubstr("blk.1.ffn_down.weight"), HasSubstr("128 x 64"), HasSubstr("512 x string"),
                    HasSubstr("Q4_1"), HasSubstr("bits a weight"), HasSubstr("context 1024 tokens")));
}

TEST(Inspect, leaves_the_tensor_table_out_when_told) {
  EXPECT_THAT(describe_image(tiny_model_image({}), {.tensors = false}),
              AllOf(Not(HasSubstr("blk.1.ffn_down.weight")), HasSubstr("bits a weight")));
}

TEST(Inspect, shortens_long_values) {
  GgufImage image;
  image.set("long", std::string(10'000, 'x'));
  image.set("list", std::vector<std::string>(5'000, "abc"));
  const std::string text = describe_image(image);
  EXPECT_LT(text.size(), 1'000u);
  EXPECT_THAT(text, AllOf(HasSubstr("(10000 bytes)"), HasSubstr("5000 x string")));
}

TEST(Inspect, lets_no_control_character_or_broken_utf8_reach_the_terminal) {
  GgufImage image;
  image.set("bad\x1b[31m", std::string("\x1b]0;title\x07 \xff\xfe \xc2\x9b"
                                       "31m caf\xc3\xa9 \xe2\x82"));
  image.add_tensor("name\x1b[2J", {1}, 0, "1234");
  const std::string text = describe_image(image);
  EXPECT_EQ(utf8_valid_prefix(text), text.size());
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32) << static_cast<int>(c);
  EXPECT_THAT(text, AllOf(HasSubstr("caf\xc3\xa9"), HasSubstr("\\x1b"), HasSubstr("\\xc2\\x9b"), HasSubstr("\\xff")));
}

}  // namespace
}  // namespace troupe::test
