#include "runtime/fingerprint.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "runtime/fnv.h"
#include "runtime/load/inspect.h"

namespace troupe {
namespace {

constexpr std::size_t kSample = 4096;  // bytes of each tensor: enough to tell two trainings apart, 1 MB in 272 tensors

}  // namespace

std::uint64_t fingerprint(const Gguf& file) {
  Fnv64 hash;
  const std::string header = describe(file, {.tensors = true, .longest_value = 4096});
  hash.add(header);
  std::array<std::byte, kSample> sample;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kSample, tensor.bytes));
    const std::span<std::byte> part(sample.data(), size);
    if (file.read(tensor, 0, part)) hash.add(part);
  }
  return hash.value();
}

}  // namespace troupe
