// Unicode 14 tables for case mapping and Python's str.isprintable(), as ranges. Generated from Python's own answers.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::jinja {

struct CodeRange {
  char32_t first, last;
};
// Every step-th code point from first to last maps to itself + shift.
struct CaseRange {
  char32_t first, last;
  std::uint32_t step;
  std::int32_t shift;
};
// Letters whose upper form is several letters, unused places 0.
struct CaseExpansion {
  char32_t code;
  char32_t upper[3];
};

std::span<const CaseRange> upper_ranges();
std::span<const CaseRange> lower_ranges();
std::span<const CaseExpansion> upper_expansions();
std::span<const CodeRange> unprintable_ranges();

}  // namespace troupe::jinja
