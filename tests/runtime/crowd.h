// The crowd test's stage: one probe sequence, watched bit by bit, among others that come, talk and go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace troupe::test {

struct Probe {
  std::vector<TokenId> prompt;
  int decode_steps = 32;
  SamplingParams sampling;
  std::int64_t keep_from = 0;  // logits of positions before this one are not compared (a large model's are too many)
};

struct CrowdPlan {
  int others = 0;          // sequences beside the probe: short lives, one after another, arriving over three launches
  std::int64_t slice = 1;  // prompt tokens that the probe computes in a launch
  std::uint64_t seed = 1;  // of the others' prompts and lengths, and of the order within each launch
};

struct Trace {
  std::vector<TokenId> tokens;  // sampled, decode_steps + 1 of them
  std::vector<float> logprobs;  // of tokens
  std::vector<float> logits;    // raw, all positions from keep_from on
  int launches = 0;
  int shared = 0;                // launches that computed others' rows too
  std::map<int, int> widths;     // sequences in a launch -> launches
  std::string describe() const;  // "34 launches, 34 shared, widths 2-8"
};

// Throws when any slice fails.
Trace run_probe(Engine& engine, const Probe& probe, const CrowdPlan& plan);

// Equality of bits. Empty when equal, else where the first difference stands.
std::string difference(const Trace& alone, const Trace& crowded);

// FNV-1a over the bits of everything compared.
std::uint64_t hash(const Trace& trace);

}  // namespace troupe::test
