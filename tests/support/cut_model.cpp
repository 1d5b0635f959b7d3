#include "tests/support/cut_model.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/gguf_image.h"

namespace troupe {
namespace {

// Walks a file of ours: what does not fit throws std::out_of_range.
class Walk {
 public:
  explicit Walk(std::string_view bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) throw std::out_of_range("the file ends too soon");
    return bytes_.substr(std::exchange(at_, at_ + count), count);
  }
  std::string text() { return std::string(take(number<std::uint64_t>())); }
  void skip_value(std::uint32_t type) {
    static constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == gguf_type::kString) {
      text();
    } else if (type == gguf_type::kArray) {
      const auto element = number<std::uint32_t>();
      for (auto left = number<std::uint64_t>(); left > 0; --left) skip_value(element);
    } else {
      take(kBytes[type]);
    }
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Entry {
  std::string name, shape;  // the shape and type as they stand
  std::uint64_t offset = 0, bytes = 0;
};

// Where the metadata begins in every file, and where in it the number of layers stands.
constexpr std::size_t kMetadata = 24;

std::size_t skip_metadata(Walk& walk, std::uint64_t entries) {
  std::size_t layers_at = 0;
  for (; entries > 0; --entries) {
    const std::string key = walk.text();
    const auto type = walk.number<std::uint32_t>();
    if (key == "llama.block_count" && type == gguf_type::kU32) layers_at = walk.at();
    walk.skip_value(type);
  }
  if (layers_at == 0) throw std::runtime_error("the model does not say how many layers it has");
  return layers_at;
}

std::vector<Entry> read_table(Walk& walk, std::uint64_t tensors) {
  std::vector<Entry> table(tensors);
  for (Entry& entry : table) {
    entry.name = walk.text();
    const auto dims = walk.number<std::uint32_t>();
    entry.shape = raw(dims) + std::string(walk.take(8 * dims + 4));
    entry.offset = walk.number<std::uint64_t>();
  }
  return table;
}

bool is_cut(const std::string& name, int layers) {
  return name.starts_with("blk.") && std::stoi(name.substr(4)) >= layers;
}

void pad(std::string& out) {
  constexpr std::size_t kAlignment = 32;
  out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
}

// A tensor ends where the next one begins.
void measure(std::vector<Entry>& table, std::uint64_t data_bytes) {
  std::ranges::sort(table, {}, &Entry::offset);
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i].bytes = (i + 1 < table.size() ? table[i + 1].offset : data_bytes) - table[i].offset;
}

}  // namespace

std::string write_cut_model(const std::string& model, int layers, const std::string& path) {
  const std::string file = read_file(model);
  Walk walk(file);
  const std::string beginning(walk.take(8));
  const auto tensors = walk.number<std::uint64_t>(), entries = walk.number<std::uint64_t>();
  const std::size_t layers_at = skip_metadata(walk, entries), metadata_end = walk.at();
  std::vector<Entry> table = read_table(walk, tensors);
  std::string front = file.substr(0, walk.at());
  pad(front);
  measure(table, file.size() - front.size());
  std::erase_if(table, [layers](const Entry& entry) { return is_cut(entry.name, layers); });

  std::string metadata = file.substr(kMetadata, metadata_end - kMetadata), data;
  metadata.replace(layers_at - kMetadata, 4, raw(static_cast<std::uint32_t>(layers)));
  std::string out = beginning + raw<std::uint64_t>(table.size()) + raw(entries) + metadata;
  for (const Entry& entry : table) {
    out += gguf_text(entry.name) + entry.shape + raw<std::uint64_t>(data.size());
    data += file.substr(front.size() + entry.offset, entry.bytes);
    pad(data);
  }
  pad(out);
  write_file(path, out + data);
  return path;
}

}  // namespace troupe
