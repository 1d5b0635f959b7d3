// Ceilings: the peak rate of the instruction that a path's inner loop consists of, with its operands in registers and
// nothing beside it. No kernel of that path can be faster.
//
// A burst multiplies ones with ones, so its accumulators sum to the multiply-adds that were really done: what it
// returns is counted by the instruction itself, and a loop that the compiler had thinned out would show. Each
// instruction set's bursts are a file of their own with its own flags (ceiling_*.cpp); call one only where supported()
// says so.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.h"

namespace troupe::kernel_bench {

struct Ceiling {
  const char* name;  // "vpdpbusd 512"
  bool (*supported)();
  // Runs for about `rounds` / 100 microseconds; the multiply-adds done.
  double (*burst)(int rounds);
};

std::span<const Ceiling> all_ceilings();

// What the paths' kernels are held against: the int8 dot product, or the float multiply-add for F32, F16 and BF16.
const Ceiling& dot_ceiling(Isa isa);
const Ceiling& fma_ceiling(Isa isa);

// Multiply-adds a second of one burst (about 200 microseconds), by this thread's own time.
double sample_rate(const Ceiling& ceiling);
// The same on `threads` threads at once, summed.
double sample_rate(const Ceiling& ceiling, int threads);

// -- the bursts --
double burst_maddubs_256(int rounds);
double burst_fma_256(int rounds);
double burst_dpbusd_256(int rounds);
double burst_maddubs_512(int rounds);
double burst_fma_512(int rounds);
double burst_dpbusd_512(int rounds);
double burst_tdpbssd(int rounds);

}  // namespace troupe::kernel_bench
