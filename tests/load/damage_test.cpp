// A tiny file with one byte changed, or cut at any length, is refused or loads and runs: it never brings the program
// down. (What the answers are worth then, nobody can know.)
#include <cstdio>
#include <gmock/gmock.h>

#include "tests/load/open_model.h"
#include "tests/support/random.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_scale.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

// The smallest model that still has every part; a header of 9 KB.
GgufImage smallest() {
  TinyModel model = tiny_model(DType::q8_0);
  model.layers = 1;
  model.width = 32;
  model.heads = 2;
  model.kv_heads = 1;
  model.ffn = 32;
  model.vocab = 264;
  model.context = 64;
  model.rope_factors = true;
  return tiny_model_image(model);
}

struct Tally {
  int refused = 0, ran = 0;
};

void load_and_run(const std::string& bytes, const std::string& path, Tally& tally) {
  write_file(path, bytes);
  auto engine = open_model(path);
  if (!engine) {
    ++tally.refused;
    EXPECT_FALSE(engine.error().message.empty());
    return;
  }
  ++tally.ran;
  (void)greedy(**engine, {1}, 4);
}

TEST(DamagedFile, any_header_byte_may_be_changed) {
  const ScratchFolder folder;
  const std::string whole = smallest().bytes();
  const std::size_t header = smallest().header().size();
  Random random(1);
  Tally tally;
  for (std::size_t at = 0; at < header; at += small_scale() ? 10 : 1) {
    const auto byte = static_cast<unsigned char>(whole[at]);
    const unsigned char values[] = {0, 0xff, static_cast<unsigned char>(byte + 1),
                                    static_cast<unsigned char>(byte ^ (1u << random.below(8)))};
    for (unsigned char value : values) {
      if (value == byte) continue;
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      load_and_run(bytes, folder.file("m.gguf"), tally);
    }
  }
  std::printf("%zu header bytes: %d files refused, %d ran\n", header, tally.refused, tally.ran);
  EXPECT_GT(tally.refused, 100);
  EXPECT_GT(tally.ran, 100);
}

TEST(DamagedFile, every_length_but_the_whole_is_refused) {
  const ScratchFolder folder;
  const std::string whole = smallest().bytes();
  const std::size_t header = smallest().header().size();
  Tally tally;
  for (std::size_t size = 0; size < header; size += small_scale() ? 10 : 1) {
    load_and_run(whole.substr(0, size), folder.file("m.gguf"), tally);
  }
  for (std::size_t size = header; size < whole.size(); size += 64) {
    load_and_run(whole.substr(0, size), folder.file("m.gguf"), tally);
  }
  EXPECT_EQ(tally.ran, 0);
  load_and_run(whole, folder.file("m.gguf"), tally);
  EXPECT_EQ(tally.ran, 1);
  std::printf("%d lengths refused\n", tally.refused);
}

}  // namespace
}  // namespace troupe::test
