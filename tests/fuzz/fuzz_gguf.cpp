// Fuzz target of the model file's header: whatever the bytes, they are refused with a sentence or obey the rules that
// the rest of the house relies on. Traps (and so ends the run with the input kept) where a promise is broken.
// Seeds: small honest files with every metadata type, every tensor format, a vocabulary, both versions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/load/inspect.h"
#include "runtime/load/vocabulary_data.h"
#include "runtime/load/weight_loader.h"
#include "runtime/text/utf8.h"

namespace troupe {
namespace {

void must(bool holds) {
  if (!holds) __builtin_trap();
}

// Inside the file, aligned, whole rows, apart from each other.
void check_tensors(const Gguf& file) {
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : file.tensors()) {
    const TypeTraits& type = traits(tensor.type);
    must(file.find_tensor(tensor.name) == &tensor);
    must(tensor.rows > 0 && tensor.cols > 0 && tensor.cols % type.block == 0);
    must(tensor.offset % file.alignment() == 0);
    must(tensor.bytes <= file.file_bytes() && tensor.offset <= file.file_bytes() - tensor.bytes);
    must(tensor.bytes / static_cast<std::uint64_t>(tensor.rows) ==
         static_cast<std::uint64_t>(tensor.cols) / type.block * type.bytes);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &GgufTensor::offset);
  for (std::size_t i = 1; i < order.size(); ++i) must(order[i - 1]->offset + order[i - 1]->bytes <= order[i]->offset);
}

void check_reads(const Gguf& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    std::vector<std::byte> data(static_cast<std::size_t>(tensor.bytes));
    must(file.read(tensor, 0, data).ok());
    must(!file.read(tensor, 1, data).ok());
    if (tensor.rows == 1 && tensor.cols <= 4096) (void)load_vector(file, tensor.name, tensor.cols);
  }
}

void check_text(const Gguf& file) {
  const std::string text = describe(file, {});
  must(utf8_valid_prefix(text) == text.size());
  must(std::ranges::none_of(text, [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 32; }));
  auto data = read_vocabulary(file);
  if (!data) return must(!data.error().message.empty());
  if (auto vocabulary = Vocabulary::create(std::move(*data)); !vocabulary) must(!vocabulary.error().message.empty());
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const auto file = Gguf::parse(std::as_bytes(std::span(data, size)));
  if (!file) {
    must(!file.error().message.empty());
    return 0;
  }
  must(file->tensor_bytes() <= size);
  check_tensors(*file);
  check_reads(*file);
  check_text(*file);
  return 0;
}
