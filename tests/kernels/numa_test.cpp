#include "kernels/numa.h"

#include <cstring>
#include <gtest/gtest.h>

#include "kernels/buffer.h"

namespace troupe {
namespace {

TEST(Numa, reads_the_kernels_lists) {
  EXPECT_EQ(parse_id_list("0"), (std::vector<int>{0}));
  EXPECT_EQ(parse_id_list("0-2,5,7-8"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_TRUE(parse_id_list("").empty());
  for (const char* nonsense : {"x", "1-", "-1", "3-1", "1,,2", "0-99999999", "1 2", "99999999999"}) {
    EXPECT_TRUE(parse_id_list(nonsense).empty()) << nonsense;
  }
}

TEST(Numa, finds_the_node_that_every_machine_has) {
  const std::vector<int> nodes = memory_nodes();
  ASSERT_FALSE(nodes.empty());
  EXPECT_TRUE(std::is_sorted(nodes.begin(), nodes.end()));
}

TEST(Numa, memory_on_all_nodes_in_turn_is_as_good_as_any) {
  const Buffer memory = allocate_host(std::size_t{8} << 20);
  EXPECT_TRUE(interleave(memory.data(), memory.size(), memory_nodes()));
  std::memset(memory.data(), 7, memory.size());
  EXPECT_EQ(memory.data()[memory.size() - 1], std::byte{7});
}

TEST(Numa, a_node_that_is_not_there_is_refused) {
  const Buffer memory = allocate_host(std::size_t{8} << 20);
  const int nowhere[] = {1000};
  EXPECT_FALSE(interleave(memory.data(), memory.size(), nowhere));
  const int never[] = {5000};
  EXPECT_FALSE(interleave(memory.data(), memory.size(), never));
}

}  // namespace
}  // namespace troupe
