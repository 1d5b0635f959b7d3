#include "tests/support/gguf_image.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return alignment == 0 ? value : (value + alignment - 1) / alignment * alignment;
}

}  // namespace

std::string gguf_text(std::string_view text) {
  return raw<std::uint64_t>(text.size()) + std::string(text);
}

void GgufImage::set_raw(const std::string& key, std::uint32_t type, std::string payload) {
  const auto found = std::ranges::find(entries, key, &ImageEntry::key);
  if (found != entries.end()) {
    *found = {key, type, std::move(payload)};
  } else {
    entries.push_back({key, type, std::move(payload)});
  }
}

void GgufImage::set(const std::string& key, const std::vector<std::string>& values) {
  std::string payload = raw(gguf_type::kString) + raw<std::uint64_t>(values.size());
  for (const std::string& value : values) payload += gguf_text(value);
  set_raw(key, gguf_type::kArray, std::move(payload));
}

void GgufImage::set(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string payload = raw(gguf_type::kI32) + raw<std::uint64_t>(values.size());
  for (std::int32_t value : values) payload += raw(value);
  set_raw(key, gguf_type::kArray, std::move(payload));
}

void GgufImage::erase(const std::string& key) {
  std::erase_if(entries, [&](const ImageEntry& one) { return one.key == key; });
}

void GgufImage::add_tensor(const std::string& name, std::vector<std::uint64_t> dims, std::uint32_t type,
                           std::string data) {
  std::uint64_t offset = 0;
  if (!tensors.empty()) offset = aligned(tensors.back().data_at + tensors.back().data.size(), alignment);
  tensors.push_back({name, std::move(dims), type, offset, offset, std::move(data)});
}

ImageEntry& GgufImage::entry(const std::string& key) {
  const auto found = std::ranges::find(entries, key, &ImageEntry::key);
  if (found == entries.end()) throw std::out_of_range("no metadata " + key);
  return *found;
}

ImageTensor& GgufImage::tensor(const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &ImageTensor::name);
  if (found == tensors.end()) throw std::out_of_range("no tensor " + name);
  return *found;
}

std::string GgufImage::header() const {
  std::string out = magic + raw(version) + raw<std::uint64_t>(claimed_tensors.value_or(tensors.size())) +
                    raw<std::uint64_t>(claimed_entries.value_or(entries.size()));
  for (const ImageEntry& one : entries) out += gguf_text(one.key) + raw(one.type) + one.payload;
  for (const ImageTensor& one : tensors) {
    out += gguf_text(one.name) + raw(static_cast<std::uint32_t>(one.dims.size()));
    for (std::uint64_t extent : one.dims) out += raw(extent);
    out += raw(one.type) + raw(one.offset);
  }
  if (!tensors.empty()) out.resize(static_cast<std::size_t>(aligned(out.size(), alignment)), '\0');
  return out;
}

std::string GgufImage::bytes() const {
  std::string out = header();
  const std::size_t data_start = out.size();
  for (const ImageTensor& one : tensors) {
    out.resize(std::max(out.size(), data_start + static_cast<std::size_t>(one.data_at) + one.data.size()), '\0');
    out.replace(data_start + static_cast<std::size_t>(one.data_at), one.data.size(), one.data);
  }
  return out;
}

void write_file(const std::string& path, std::string_view bytes) {
  // A new file each time: whoever has the old one open keeps it, and no disk is waited for (ext4 flushes a file that
  // was cut to nothing when it is closed).
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace troupe
