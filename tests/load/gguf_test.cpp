// What is read from a good file: all metadata types, tensors, data; and the errors of the typed getters.
#include "runtime/load/gguf.h"

#include <chrono>
#include <gmock/gmock.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/load/vocabulary_data.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

using namespace gguf_type;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Gguf> parse(const std::string& bytes) {
  return Gguf::parse(std::as_bytes(std::span(bytes)));
}

// One of each type, at its extremes.
GgufImage all_types() {
  GgufImage image;
  image.set_raw("u8", kU8, raw<std::uint8_t>(255));
  image.set_raw("i8", kI8, raw<std::int8_t>(-128));
  image.set_raw("u16", kU16, raw<std::uint16_t>(65535));
  image.set_raw("i16", kI16, raw<std::int16_t>(-32768));
  image.set_raw("u32", kU32, raw<std::uint32_t>(4294967295u));
  image.set_raw("i32", kI32, raw<std::int32_t>(-2147483647 - 1));
  image.set_raw("u64", kU64, raw(std::numeric_limits<std::uint64_t>::max()));
  image.set_raw("i64", kI64, raw(std::numeric_limits<std::int64_t>::min()));
  image.set_raw("f32", kF32, raw(1.5f));
  image.set_raw("f64", kF64, raw(-0.1));
  image.set("yes", true);
  image.set("text", std::string("caf\xc3\xa9\0!", 7));
  image.set("texts", std::vector<std::string>{"", "a", "bc"});
  image.set_raw("u8s", kArray, raw(kU8) + raw<std::uint64_t>(3) + "\1\2\xff");
  image.set_raw("bools", kArray, raw(kBool) + raw<std::uint64_t>(2) + std::string("\1\0", 2));
  image.set_raw("f32s", kArray, raw(kF32) + raw<std::uint64_t>(2) + raw(0.5f) + raw(-2.0f));
  image.set_raw("none", kArray, raw(kI64) + raw<std::uint64_t>(0));
  return image;
}

TEST(Gguf, reads_every_metadata_type) {
  const std::string bytes = all_types().bytes();
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file->get_uint("u8"), 255u);
  EXPECT_EQ(std::get<std::int64_t>(file->find("i8")->value), -128);
  EXPECT_EQ(*file->get_uint("u16"), 65535u);
  EXPECT_EQ(std::get<std::int64_t>(file->find("i16")->value), -32768);
  EXPECT_EQ(*file->get_uint("u32"), 4294967295u);
  EXPECT_EQ(std::get<std::int64_t>(file->find("i32")->value), -2147483648ll);
  EXPECT_EQ(*file->get_uint("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(std::get<std::int64_t>(file->find("i64")->value), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(*file->get_float("f32"), 1.5);
  EXPECT_EQ(*file->get_float("f64"), -0.1);
  EXPECT_TRUE(*file->get_bool("yes"));
  EXPECT_EQ(*file->get_string("text"), std::string("caf\xc3\xa9\0!", 7));
  EXPECT_THAT(**file->get_strings("texts"), ElementsAre("", "a", "bc"));
  const auto numbers = [&](const char* key) {
    return std::get<std::vector<std::uint64_t>>(std::get<GgufArray>(file->find(key)->value).values);
  };
  EXPECT_THAT(numbers("u8s"), ElementsAre(1, 2, 255));
  EXPECT_THAT(numbers("bools"), ElementsAre(1, 0));
  EXPECT_EQ(std::get<GgufArray>(file->find("f32s")->value).size(), 2u);
  EXPECT_EQ(std::get<GgufArray>(file->find("none")->value).size(), 0u);
  EXPECT_EQ(file->metadata().size(), 17u);
}

TEST(Gguf, a_getter_names_the_key_and_both_types) {
  const std::string bytes = all_types().bytes();
  const auto file = parse(bytes);
  ASSERT_TRUE(file);
  EXPECT_THAT(file->get_uint("missing").error().message, AllOf(HasSubstr("missing"), HasSubstr("is missing")));
  EXPECT_THAT(file->get_uint("text").error().message,
              AllOf(HasSubstr("text"), HasSubstr("string"), HasSubstr("integer")));
  EXPECT_THAT(file->get_uint("i8").error().message, AllOf(HasSubstr("i8"), HasSubstr("non-negative")));
  EXPECT_THAT(file->get_string("u32").error().message, AllOf(HasSubstr("u32"), HasSubstr("a string")));
  EXPECT_THAT(file->get_float("u32").error().message, AllOf(HasSubstr("u32"), HasSubstr("a float")));
  EXPECT_THAT(file->get_bool("u8").error().message, AllOf(HasSubstr("u8"), HasSubstr("a bool")));
  EXPECT_THAT(file->get_strings("u8s").error().message, AllOf(HasSubstr("array"), HasSubstr("strings")));
}

TEST(Gguf, versions_2_and_3_read_the_same) {
  GgufImage image = tiny_model_image({});
  for (std::uint32_t version : {2u, 3u}) {
    image.version = version;
    const std::string bytes = image.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(file->tensors().size(), image.tensors.size());
  }
}

TEST(Gguf, tensors_stand_where_the_table_says_whatever_the_alignment) {
  for (std::uint64_t alignment : {8u, 32u, 64u, 4096u}) {
    GgufImage image;
    image.alignment = alignment;
    image.set("general.alignment", static_cast<std::uint32_t>(alignment));
    image.add_tensor("a", {3}, 0, std::string(12, 'a'));
    image.add_tensor("b", {32, 2, 3}, 8, std::string(6 * 34, 'b'));
    const std::string bytes = image.bytes();
    const auto file = parse(bytes);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->alignment(), alignment);
    const GgufTensor& b = *file->find_tensor("b");
    EXPECT_EQ(b.type, DType::q8_0);
    EXPECT_THAT(b.dims, ElementsAre(32, 2, 3));
    EXPECT_EQ(b.rows, 6);
    EXPECT_EQ(b.cols, 32);
    EXPECT_EQ(b.bytes, 6u * 34);
    EXPECT_EQ(b.offset % alignment, 0u);
    EXPECT_EQ(file->tensor_bytes(), 12u + 6 * 34);
    std::vector<std::byte> data(4);
    ASSERT_TRUE(file->read(b, b.bytes - 4, data));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data()), 4), "bbbb");
    EXPECT_FALSE(file->read(b, b.bytes - 3, data)) << "read past the tensor's end";
    EXPECT_FALSE(file->read(b, std::numeric_limits<std::uint64_t>::max(), data));
  }
}

TEST(Gguf, an_unknown_tensor_type_is_refused_with_the_list_of_known_ones) {
  GgufImage image;
  image.add_tensor("blk.0.attn_q.weight", {32}, 23, std::string(64, '\0'));
  const std::string bytes = image.bytes();
  const auto file = parse(bytes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::unsupported);
  EXPECT_THAT(file.error().message, AllOf(HasSubstr("blk.0.attn_q.weight"), HasSubstr("type 23 (IQ4_XS)"),
                                          HasSubstr("F32, F16, Q4_0"), HasSubstr("Q6_K"), HasSubstr("BF16")));
}

TEST(Gguf, what_is_not_a_model_file_is_refused_by_its_path) {
  const ScratchFolder folder;
  EXPECT_EQ(Gguf::open(folder.file("absent.gguf")).error().code, ErrorCode::not_found);
  EXPECT_THAT(Gguf::open(folder.file("absent.gguf")).error().message, HasSubstr(folder.file("absent.gguf")));
  EXPECT_THAT(Gguf::open(folder.file("")).error().message, HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Gguf::open(folder.file("pipe")).error().message, HasSubstr("not a regular file")) << "or hung";
}

TEST(Gguf, a_file_cut_short_after_it_was_opened_is_an_io_error) {
  const ScratchFolder folder;
  const std::string path = write_tiny_model({}, folder.file("m.gguf"));
  const auto file = Gguf::open(path);
  ASSERT_TRUE(file);
  ASSERT_EQ(::truncate(path.c_str(), 100'000), 0);
  const GgufTensor& last = file->tensors().back();
  std::vector<std::byte> data(static_cast<std::size_t>(last.bytes));
  const auto read = file->read(last, 0, data);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::io);
  EXPECT_THAT(read.error().message, AllOf(HasSubstr(path), HasSubstr("byte " + std::to_string(last.offset))));
}

TEST(Gguf, the_vocabulary_comes_out_as_it_stands) {
  const std::string bytes = tiny_model_image({}).bytes();
  const auto file = parse(bytes);
  ASSERT_TRUE(file);
  const auto data = read_vocabulary(*file);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->model, "gpt2");
  EXPECT_EQ(data->pre, "smollm");
  EXPECT_EQ(data->pieces.size(), 512u);
  EXPECT_EQ(data->pieces[2], "<|im_end|>");
  EXPECT_EQ(data->kinds[2], TokenKind::control);
  EXPECT_EQ(data->kinds[3], TokenKind::normal);
  EXPECT_EQ(data->merges.size(), 512u - 259);
  EXPECT_EQ(data->merges[0], "\xc4\xa0 t");
  EXPECT_EQ(data->bos, 1);
  EXPECT_EQ(data->eos, 2);
  EXPECT_EQ(data->unknown, 0);
  EXPECT_FALSE(data->eot);
  EXPECT_FALSE(data->add_bos);
}

TEST(Gguf, a_vocabulary_of_half_a_million_strings_is_cheap) {
  GgufImage image;
  std::vector<std::string> pieces;
  for (int i = 0; i < 500'000; ++i) pieces.push_back("piece" + std::to_string(i));
  image.set("tokenizer.ggml.tokens", pieces);
  const std::string bytes = image.bytes();
  const auto start = std::chrono::steady_clock::now();
  const auto file = parse(bytes);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file->get_strings("tokenizer.ggml.tokens"))->size(), 500'000u);
  EXPECT_LT(seconds, 1.0);
}

}  // namespace
}  // namespace troupe::test
