// attend() calls on one backend, with everything that they read and write made from a seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tests/kernels/backend_lab.h"
#include "tests/support/kv_pages.h"

namespace troupe::test {

struct Step {
  std::int64_t position, rows;
};

struct AttendCase {
  KvLayout layout;  // attends in the last layer
  int group = 1;    // query heads of a kv head
  std::vector<Step> steps;
  int rope_dim = 0;  // 0: the whole head
  RopePairs pairs = RopePairs::neighbours;
  // Puts other values in the place of the rows' random keys and values, [rows][kv_heads * head_dim] each.
  std::function<void(std::span<float> k, std::span<float> v)> change = {};
};

struct AttendResult {
  Output output;                 // out, rotated q, rotated k
  std::vector<std::byte> pages;  // all of them, poison included
};

// One launch of all the case's steps.
AttendResult run_attend(Backend& backend, const AttendCase& one);
// Row by row, each in a launch of its own, in order: out is the same as run_attend's by the contract.
AttendResult run_attend_alone(Backend& backend, const AttendCase& one);

}  // namespace troupe::test
