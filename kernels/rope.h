// RopeTable: the rotation angles of every position, computed once on the host in double by one routine.
//
// cos and sin are [positions][pairs] float32, row-major, in host memory. Backends may copy them to their device.
// rope_hash() is part of the fingerprint that decides whether two programs give the same bits (numerics.md).
// Angle of pair i at position p: p * theta_i, theta_i = base^(-2i/dim), changed by the file's scaling:
//   linear     theta_i / factor                                  (Chen et al. 2023, position interpolation)
//   factors    theta_i / frequency_factors[i]                    (the rope_freqs.weight tensor of Llama 3.1 files)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

// Which elements of a head form pair i: neighbours (2i, 2i+1), as Llama GGUF files store q and k; or (i, i + dim/2).
enum class RopePairs : std::uint8_t { neighbours, halves };

struct RopeParams {
  int dim = 0;  // rotated elements of a head, even, <= head_dim; the rest pass unchanged
  double base = 10000.0;
  double linear_factor = 1.0;
  std::span<const float> frequency_factors = {};  // empty, or dim / 2 values > 0
  RopePairs pairs = RopePairs::neighbours;
};

struct RopeTable {
  int dim = 0;
  RopePairs pairs = RopePairs::neighbours;
  std::int64_t positions = 0;
  std::vector<float> cos;  // [positions][dim / 2]
  std::vector<float> sin;

  static RopeTable create(const RopeParams& params, std::int64_t positions);
};

// FNV-1a over dim, pairs and the bits of both tables at fixed positions (0 .. 255, and powers of two up to 2^19): what
// two hosts compute from the same parameters, whatever context each of them prepares.
std::uint64_t rope_hash(const RopeParams& params);

}  // namespace troupe
