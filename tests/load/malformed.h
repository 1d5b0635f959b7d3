// The classes of malformed model files: each takes an honest tiny model and breaks one thing.
#pragma once

#include <string>
#include <vector>

#include "tests/support/gguf_image.h"
#include "tests/support/random.h"

namespace troupe::test {

struct Malformed {
  std::string bytes;  // of the file
  std::string place;  // what the refusal must name: a byte, a key or a tensor
};

struct MalformedClass {
  const char* name;
  Malformed (*make)(GgufImage image, Random& random);
};

// What breaks the format itself: preamble, keys, values, tensor table, lengths.
std::vector<MalformedClass> malformed_headers();
// Well-formed files whose parts contradict each other: parameters, tensors, vocabulary.
std::vector<MalformedClass> malformed_models();

inline const ImageTensor& any_tensor(const GgufImage& image, Random& random) {
  return image.tensors[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(image.tensors.size())))];
}
// A matrix, not a norm.
inline ImageTensor& any_matrix(GgufImage& image, Random& random) {
  std::vector<ImageTensor*> matrices;
  for (ImageTensor& one : image.tensors) {
    if (one.dims.size() == 2) matrices.push_back(&one);
  }
  return *matrices[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(matrices.size())))];
}

}  // namespace troupe::test
