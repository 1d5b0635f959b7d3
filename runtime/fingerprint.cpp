#include "runtime/fingerprint.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "runtime/load/inspect.h"

namespace troupe {
namespace {

constexpr std::size_t kSample = 4096;  // bytes of each tensor: enough to tell two trainings apart, 1 MB in 272 tensors

void add(std::uint64_t& hash, std::span<const std::byte> bytes) {
  for (std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211ull;
}

}  // namespace

std::uint64_t fingerprint(const Gguf& file) {
  std::uint64_t hash = 1469598103934665603ull;
  const std::string header = describe(file, {.tensors = true, .longest_value = 4096});
  add(hash, std::as_bytes(std::span(header)));
  std::array<std::byte, kSample> sample;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kSample, tensor.bytes));
    const std::span<std::byte> part(sample.data(), size);
    if (file.read(tensor, 0, part)) add(hash, part);
  }
  return hash;
}

}  // namespace troupe
