// The loop of a burst, written once over a vector type V. Included by ceiling_*.cpp only, with their own flags; V is a
// type of an anonymous namespace, so no two instruction sets share a function.
#pragma once

namespace troupe::kernel_bench {

constexpr int kStepsOfRound = 400;  // times V::kChains instructions: about 10 microseconds a hundred rounds

// V: Register, kChains independent accumulators (latency 4 to 5 by 2 a cycle needs 10), zero(), ones(),
// step(accumulator, ones), total(accumulator) = the multiply-adds in it. The step is assembly: g++ 12 puts a copy
// beside every intrinsic with a tied operand, which costs 256-bit VNNI half its rate.
template <class V>
double burst(int rounds) {
  const typename V::Register ones = V::ones();
  typename V::Register chain[V::kChains];
  double total = 0.0;
  for (int round = 0; round < rounds; ++round) {
    for (auto& one : chain) one = V::zero();
    for (int step = 0; step < kStepsOfRound; ++step) {
#pragma GCC unroll 16
      for (int c = 0; c < V::kChains; ++c) V::step(chain[c], ones);
    }
    for (const auto& one : chain) total += V::total(one);
  }
  return total;
}

}  // namespace troupe::kernel_bench
