// GgufImage: a GGUF file in pieces, for tests that write one, or write one wrongly.
//
//     GgufImage image;
//     image.set("general.architecture", std::string("llama"));
//     image.add_tensor("token_embd.weight", {64, 512}, 0, data);
//     std::string file = image.bytes();
//
// Every number that stands in a file can be set apart from the truth (claimed counts, types, offsets, dimensions), so a
// malformed file is an honest one with one field changed. Written independently of runtime/load on purpose.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Little-endian bytes of a number.
template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
// A u64 length and the bytes: a string as GGUF writes it.
std::string gguf_text(std::string_view text);

// The type numbers of the format.
namespace gguf_type {
inline constexpr std::uint32_t kU8 = 0, kI8 = 1, kU16 = 2, kI16 = 3, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7,
                               kString = 8, kArray = 9, kU64 = 10, kI64 = 11, kF64 = 12;
}  // namespace gguf_type

struct ImageEntry {
  std::string key;
  std::uint32_t type = 0;
  std::string payload;  // the value's bytes, as they stand in the file
};

struct ImageTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  // fastest first
  std::uint32_t type = 0;           // GGUF's number
  std::uint64_t offset = 0;         // what the table says, from the start of the data; add_tensor sets the right one
  std::uint64_t data_at = 0;        // where the data really lies
  std::string data;
};

struct GgufImage {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> claimed_tensors;  // instead of the true counts
  std::optional<std::uint64_t> claimed_entries;
  std::uint64_t alignment = 32;
  std::vector<ImageEntry> entries;
  std::vector<ImageTensor> tensors;

  // Replaces the key's value, or appends it.
  void set_raw(const std::string& key, std::uint32_t type, std::string payload);
  void set(const std::string& key, std::uint32_t value) { set_raw(key, gguf_type::kU32, raw(value)); }
  void set(const std::string& key, float value) { set_raw(key, gguf_type::kF32, raw(value)); }
  void set(const std::string& key, bool value) { set_raw(key, gguf_type::kBool, raw<std::uint8_t>(value)); }
  void set(const std::string& key, const std::string& value) { set_raw(key, gguf_type::kString, gguf_text(value)); }
  void set(const std::string& key, const std::vector<std::string>& values);
  void set(const std::string& key, const std::vector<std::int32_t>& values);
  void erase(const std::string& key);

  // Appends it behind the last tensor's data, aligned.
  void add_tensor(const std::string& name, std::vector<std::uint64_t> dims, std::uint32_t type, std::string data);

  ImageEntry& entry(const std::string& key);     // throws std::out_of_range
  ImageTensor& tensor(const std::string& name);  // throws std::out_of_range

  std::string header() const;  // up to and with the padding before the data
  std::string bytes() const;
};

// Writes a whole file; throws std::runtime_error.
void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);

}  // namespace troupe
