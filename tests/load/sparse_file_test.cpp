// A file of holes claims any size and takes no disk: what it claims must cost neither time nor memory.
#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/load/gguf.h"
#include "tests/load/allocation_meter.h"
#include "tests/support/gguf_image.h"
#include "tests/support/scratch_folder.h"

namespace troupe::test {
namespace {

using namespace gguf_type;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20, kFileSize = (std::uint64_t{32} << 30);

std::string preamble(std::uint64_t entries) {
  return "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(0) + raw(entries);
}

class SparseFile : public testing::Test {
 protected:
  // Writes `text` at the place; what lies between is a hole.
  void write(std::uint64_t at, const std::string& text) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << text;
    ASSERT_TRUE(file.flush());
  }

  void begin(const std::string& text) {
    std::ofstream(path_) << text;
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(kFileSize)), 0);
  }

  void expect_refused_cheaply(const std::string& words) {
    const AllocationMeter meter;
    const auto began = std::chrono::steady_clock::now();
    const auto file = Gguf::open(path_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message, AllOf(HasSubstr(path_), HasSubstr(words)));
    EXPECT_LT(seconds, 1.0);
    EXPECT_LE(meter.peak(), 128 * kMiB);
  }

  ScratchFolder folder_;
  std::string path_ = folder_.file("sparse.gguf");
};

TEST_F(SparseFile, of_one_huge_string_is_refused_at_its_length) {
  begin(preamble(1) + gguf_text("key") + raw(kString) + raw(std::uint64_t{4} << 30));
  expect_refused_cheaply("at byte 39 claims 4294967296 bytes; 16777216 are possible");
}

TEST_F(SparseFile, of_a_huge_array_is_refused_before_it_is_read) {
  for (std::uint32_t element : {kU8, kString}) {
    begin(preamble(1) + gguf_text("key") + raw(kArray) + raw(element) + raw(std::uint64_t{1} << 31));
    expect_refused_cheaply("would take more than 112 MiB of memory");
  }
}

TEST_F(SparseFile, of_many_long_strings_is_refused_within_the_memory_promised) {
  begin(preamble(64));
  std::uint64_t at = preamble(64).size();
  for (int i = 0; i < 64; ++i) {
    const std::string head = gguf_text("key " + std::to_string(i)) + raw(kString) + raw(16 * kMiB);
    write(at, head);
    at += head.size() + 16 * kMiB;
  }
  expect_refused_cheaply("would take more than 112 MiB of memory");
}

}  // namespace
}  // namespace troupe::test
