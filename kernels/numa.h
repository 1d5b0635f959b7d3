// Memory of machines with several memory nodes (NUMA).
//
// All threads read all weights, so on such a machine the weights belong on all nodes in turn: each thread then reads at
// the nodes' mean rate, whichever core it is on. On one node (most machines) there is nothing to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

// What a user says with --numa.
enum class Numa : std::uint8_t {
  interleave,  // where there are several nodes; the default
  off,         // memory lies where the thread that first writes it runs: for who binds the process to one node
};

// "0-2,5" is 0, 1, 2, 5: the kernel's way of writing a set. Empty for what is none.
std::vector<int> parse_id_list(std::string_view text);

// The nodes that this process may take memory from (its cpuset counts), ascending. Empty where the system does not
// tell.
std::vector<int> memory_nodes();

// Pages of the range that nobody has touched yet will lie on `nodes` in turn. `data` is aligned to a page. False when
// the system refuses; the memory is as good as before.
bool interleave(std::byte* data, std::size_t bytes, std::span<const int> nodes);

}  // namespace troupe
