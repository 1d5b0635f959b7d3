// Split models: opened by their first part, one file to the rest of the house.
#include <filesystem>
#include <gmock/gmock.h>

#include "runtime/load/gguf.h"
#include "runtime/load/split_name.h"
#include "tests/load/open_model.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void set_split(GgufImage& image, std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  image.set_raw("split.no", gguf_type::kU16, raw(number));
  image.set_raw("split.count", gguf_type::kU16, raw(count));
  image.set_raw("split.tensors.count", gguf_type::kI32, raw(tensors));
}

// The tensors of a tiny model in three parts; the metadata in the first.
std::vector<GgufImage> three_parts() {
  const GgufImage whole = tiny_model_image({});
  std::vector<GgufImage> parts(3);
  parts[0].entries = whole.entries;
  const std::size_t share = whole.tensors.size() / 3 + 1;
  for (std::size_t i = 0; i < whole.tensors.size(); ++i) {
    const ImageTensor& one = whole.tensors[i];
    parts[i / share].add_tensor(one.name, one.dims, one.type, one.data);
  }
  for (std::uint16_t i = 0; i < 3; ++i) set_split(parts[i], i, 3, static_cast<std::int32_t>(whole.tensors.size()));
  return parts;
}

std::string write_parts(const ScratchFolder& folder, const std::vector<GgufImage>& parts) {
  const SplitName name{folder.file("m"), 1, parts.size()};
  for (std::size_t i = 0; i < parts.size(); ++i) write_file(name.part(i + 1), parts[i].bytes());
  return name.part(1);
}

TEST(SplitModel, three_parts_answer_as_one_file) {
  const ScratchFolder folder;
  auto whole = open_model(write_tiny_model({}, folder.file("whole.gguf")));
  auto split = open_model(write_parts(folder, three_parts()));
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(greedy(**split, {70, 71, 72}, 16), greedy(**whole, {70, 71, 72}, 16));
}

TEST(SplitModel, a_later_part_is_refused_with_the_name_of_the_first) {
  const ScratchFolder folder;
  write_parts(folder, three_parts());
  const auto file = Gguf::open(folder.file("m-00002-of-00003.gguf"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr(folder.file("m-00001-of-00003.gguf")));
}

TEST(SplitModel, a_missing_part_is_named) {
  const ScratchFolder folder;
  const std::string first = write_parts(folder, three_parts());
  std::filesystem::remove(folder.file("m-00003-of-00003.gguf"));
  const auto file = Gguf::open(first);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
  EXPECT_THAT(file.error().message, HasSubstr("m-00003-of-00003.gguf"));
}

TEST(SplitModel, parts_that_contradict_each_other_are_refused_by_name) {
  const ScratchFolder folder;
  const auto refusal = [&](std::vector<GgufImage> parts) {
    return Gguf::open(write_parts(folder, parts)).error().message;
  };
  auto parts = three_parts();
  std::swap(parts[1], parts[2]);
  EXPECT_THAT(refusal(parts), AllOf(HasSubstr("m-00002-of-00003.gguf"), HasSubstr("split.no")));
  parts = three_parts();
  parts[2].add_tensor("extra", {1}, 0, "1234");
  EXPECT_THAT(refusal(parts), HasSubstr("split.tensors.count"));
  parts = three_parts();
  parts[2].tensors[0].name = parts[0].tensors[0].name;
  EXPECT_THAT(refusal(parts), AllOf(HasSubstr("m-00003-of-00003.gguf"), HasSubstr(parts[0].tensors[0].name)));
  parts = three_parts();
  set_split(parts[0], 0, 4, 0);
  EXPECT_THAT(refusal(parts), AllOf(HasSubstr("split.count is 4"), HasSubstr("says 3")));
  parts = three_parts();
  parts[1].magic = "JUNK";
  EXPECT_THAT(refusal(parts), AllOf(HasSubstr("m-00002-of-00003.gguf"), HasSubstr("not a GGUF file")));
}

TEST(SplitModel, a_first_part_under_another_name_says_what_is_missing) {
  const ScratchFolder folder;
  write_file(folder.file("renamed.gguf"), three_parts()[0].bytes());
  const auto file = Gguf::open(folder.file("renamed.gguf"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr("split.count is 3"), HasSubstr("-00001-of-")));
}

TEST(SplitModel, only_names_of_that_form_are_parts) {
  const auto split = SplitName::parse("/a/b-00002-of-00011.gguf");
  ASSERT_TRUE(split);
  EXPECT_EQ(split->number, 2u);
  EXPECT_EQ(split->count, 11u);
  EXPECT_EQ(split->part(11), "/a/b-00011-of-00011.gguf");
  for (const char* other : {"model.gguf", "-00001-of-00003.gguf", "m-00001-of-00003.bin", "m-0001-of-00003.gguf",
                            "m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m-+0001-of-00003.gguf"}) {
    EXPECT_FALSE(SplitName::parse(other)) << other;
  }
}

}  // namespace
}  // namespace troupe::test
