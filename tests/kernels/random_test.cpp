// Philox 4x32-10 against the known answers that its authors publish with Random123 (kat_vectors).
#include "kernels/random.h"

#include <gtest/gtest.h>
#include <vector>

namespace troupe {
namespace {

TEST(Philox, gives_the_published_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffffull),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Key words a4093822, 299f31d0: the first is the low word of the seed.
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ull),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, uniform_is_the_first_words_upper_24_bits) {
  EXPECT_EQ(uniform(0, 0, RandomPurpose::draw), static_cast<float>(0x6627e8) / 16777216.0f);
}

TEST(Philox, uniform_depends_on_every_part_of_the_counter_and_stays_below_one) {
  const float base = uniform(5, 9, RandomPurpose::draw, 2);
  EXPECT_NE(base, uniform(6, 9, RandomPurpose::draw, 2));
  EXPECT_NE(base, uniform(5 + (1ull << 32), 9, RandomPurpose::draw, 2));
  EXPECT_NE(base, uniform(5, 10, RandomPurpose::draw, 2));
  EXPECT_NE(base, uniform(5, 9, RandomPurpose::draw, 3));
  std::vector<int> share(10);
  for (std::uint32_t position = 0; position < 100000; ++position) {
    const float u = uniform(1, position, RandomPurpose::draw);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ++share[static_cast<std::size_t>(u * 10.0f)];
  }
  for (int count : share) EXPECT_NEAR(count, 10000, 400);  // four standard deviations
}

}  // namespace
}  // namespace troupe
