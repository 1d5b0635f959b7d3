// Every class of malformed file is refused with the place and the reason, quickly, and without taking the memory that
// the file merely claims.
#include "tests/load/malformed.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <gmock/gmock.h>
#include <utility>

#include "tests/load/allocation_meter.h"
#include "tests/load/open_model.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeeds = 8;

// Another honest file each seed: types, head, rope.
GgufImage honest(std::uint64_t seed) {
  static constexpr DType kTypes[] = {DType::f32, DType::q8_0, DType::q4_0, DType::f16};
  TinyModel model = tiny_model(kTypes[seed % 4]);
  model.tied = seed % 2 == 0;
  model.rope_factors = seed >= 4;
  model.seed = seed;
  return tiny_model_image(model);
}

struct Figures {
  int cases = 0;
  double slowest = 0.0;         // seconds
  std::size_t most_memory = 0;  // bytes
};

void expect_refused(const MalformedClass& one, std::uint64_t seed, const std::string& path, Figures& figures) {
  SCOPED_TRACE(std::string(one.name) + ", seed " + std::to_string(seed));
  Random random(seed + 100);
  const Malformed file = one.make(honest(seed), random);
  write_file(path, file.bytes);
  const AllocationMeter meter;
  const auto start = std::chrono::steady_clock::now();
  const auto opened = open_model(path);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::size_t memory = meter.peak();
  ASSERT_FALSE(opened) << "was taken for a good file";
  EXPECT_THAT(opened.error().message, HasSubstr(file.place));
  EXPECT_THAT(opened.error().message, HasSubstr(path)) << "no file named";
  EXPECT_LT(seconds, 1.0);
  EXPECT_LE(memory, 2 * file.bytes.size() + (std::size_t{64} << 20));
  ++figures.cases;
  figures.slowest = std::max(figures.slowest, seconds);
  figures.most_memory = std::max(figures.most_memory, memory);
}

TEST(MalformedFile, the_honest_files_open_and_run) {
  const ScratchFolder folder;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    write_file(folder.file("model.gguf"), honest(seed).bytes());
    auto engine = open_model(folder.file("model.gguf"));
    ASSERT_TRUE(engine) << engine.error().message;
    EXPECT_EQ(greedy(**engine, {70, 71, 72}, 4).size(), 4u);
  }
}

TEST(MalformedFile, every_class_is_refused_with_its_place) {
  const ScratchFolder folder;
  std::vector<MalformedClass> classes = malformed_headers();
  std::ranges::copy(malformed_models(), std::back_inserter(classes));
  EXPECT_GE(classes.size(), 60u);
  Figures figures;
  for (const MalformedClass& one : classes) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) expect_refused(one, seed, folder.file("bad.gguf"), figures);
  }
  std::printf("%zu classes, %d of %zu cases refused; slowest %.1f ms, most memory %.2f MB\n", classes.size(),
              figures.cases, classes.size() * kSeeds, 1e3 * figures.slowest,
              static_cast<double>(figures.most_memory) / 1e6);
}

// Four million empty strings take 32 MB in the file and would take 128 MB as objects; entries are worse.
TEST(MalformedFile, a_header_of_very_many_small_things_is_refused_within_the_memory_promised) {
  GgufImage strings, entries;
  const std::uint64_t count = 4 << 20;
  strings.set_raw("many", gguf_type::kArray,
                  raw(gguf_type::kString) + raw(count) + std::string(static_cast<std::size_t>(8 * count), '\0'));
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    entries.entries.push_back({std::string(reinterpret_cast<const char*>(&i), 4), gguf_type::kU8, "x"});
  }
  for (const GgufImage* image : {&strings, &entries}) {
    const std::string bytes = image->bytes();
    const AllocationMeter meter;
    const auto file = Gguf::parse(std::as_bytes(std::span(bytes)));
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message, HasSubstr("MiB of memory"));
    EXPECT_LE(meter.peak(), 2 * bytes.size() + (std::size_t{64} << 20));
  }
}

}  // namespace
}  // namespace troupe::test
