// The hash of each operation's results for fixed seeds, committed: a CPU of any kind proves by itself that it gives the
// bits of every other (docs/numerics.md, L2).
//
// After a deliberate change of the contract, with its version raised: the failing test prints the new golden.inc.
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "kernels/math.h"
#include "tests/kernels/attend_lab.h"

namespace troupe::test {
namespace {

using Hashes = std::map<std::string, std::uint64_t>;

// The first entry is the version of the contract.
const Hashes kGolden{
#include "tests/kernels/golden.inc"
};

void add_matmuls(Backend& backend, DType type, std::int64_t cols, Hashes& hashes) {
  Random random(1000 + static_cast<std::uint64_t>(type));
  const std::string name = std::string(traits(type).name) + " " + std::to_string(cols) + " ";
  const FileMatrix w = random_matrix(type, 40, cols, random), wild = wild_matrix(type, 24, cols, random);
  const RowInputs in = random_inputs(5, cols, random);
  const std::vector<std::int32_t> wanted{4, 0};
  hashes[name + "qkv"] = hash(run_qkv(backend, in, 5, w, wild, w));
  hashes[name + "gate_up"] = hash(run_gate_up(backend, in, 5, w, w));
  hashes[name + "project_add"] = hash(run_project_add(backend, in, 5, wild));
  hashes[name + "head"] = hash(run_head(backend, in, 5, wanted, w));
  hashes[name + "embed"] = hash(run_embed(backend, wild, wanted));
}

void add_attention(Backend& backend, KvType type, Hashes& hashes) {
  const KvLayout layout{.layers = 1, .kv_heads = 2, .head_dim = 64, .type = type};
  const AttendResult result = run_attend(backend, {layout, 3, {{600, 1}, {250, 20}, {0, 17}}});
  hashes[std::string("attend ") + name(type)] = hash(result.output);
}

void add_log_sum(Backend& backend, Hashes& hashes) {
  Random random(2000);
  Output output{std::vector<float>(1), {}};
  const std::vector<float> logits = random.bells(49152, 4.0f);
  const LogSumRequest request{logits.data(), 49152, output.values.data()};
  backend.log_sum_exp({&request, 1});
  hashes["log_sum_exp"] = hash(output);
}

Hashes all_hashes(Backend& backend) {
  Hashes hashes{{" version", kNumericsVersion}};
  for (DType type : all_formats()) {
    add_matmuls(backend, type, ragged_cols(type).front() == 32 ? 64 : 256, hashes);
    add_matmuls(backend, type, ragged_cols(type).back(), hashes);
  }
  for (KvType type : kKvTypes) add_attention(backend, type, hashes);
  add_log_sum(backend, hashes);
  return hashes;
}

std::string as_source(const Hashes& hashes) {
  std::string text;
  for (const auto& [name, value] : hashes) {
    char line[128];
    std::snprintf(line, sizeof line, "{\"%s\", 0x%016" PRIx64 "},\n", name.c_str(), value);
    text += line;
  }
  return text;
}

TEST(Golden, the_reference_gives_the_committed_hashes) {
  const Hashes hashes = all_hashes(Lab::get().reference());
  EXPECT_EQ(hashes.size(), 115u);
  EXPECT_TRUE(hashes == kGolden) << "the results are now\n" << as_source(hashes);
}

TEST(Golden, every_path_gives_the_committed_hashes) {
  for (NamedBackend& path : Lab::get().paths()) {
    for (const auto& [name, value] : all_hashes(*path.backend)) {
      const auto committed = kGolden.find(name);
      ASSERT_NE(committed, kGolden.end()) << name;
      EXPECT_EQ(value, committed->second) << path.name << ", " << name;
    }
  }
}

TEST(Golden, page_and_code_speak_of_one_version) {
  std::ifstream page(TROUPE_TEST_DATA "/../../docs/numerics.md");
  std::string title;
  ASSERT_TRUE(std::getline(page, title));
  EXPECT_EQ(title, "# Numerics contract, version " + std::to_string(kNumericsVersion));
}

}  // namespace
}  // namespace troupe::test
