// Gguf: the header of a GGUF file, version 2 or 3, and access to its tensors' bytes.
//
// (Format: the "GGUF" page of the ggml project's docs.) Layout: magic, version, tensor count, metadata count, metadata
// (key, type, value), tensor table (name, dimensions fastest first, type, offset), padding to the alignment, data.
// A split model (name-00001-of-00003.gguf) is opened by its first part; all parts then act as one file.
// Reads the header only; tensors are read on demand. Malformed input is refused with the place and the reason, before
// anything is allocated that the file merely claims.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "kernels/result.h"
#include "kernels/tensor.h"
#include "runtime/load/byte_reader.h"

namespace troupe {

// The numbers of the format.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
const char* name(GgufType type);

struct GgufArray {
  GgufType element = GgufType::u8;
  // Numbers widened by kind; booleans as 0 and 1.
  std::variant<std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>
      values;
  std::size_t size() const;
};

struct GgufValue {
  GgufType type = GgufType::u8;
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray> value;
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  DType type = DType::f32;
  std::vector<std::int64_t> dims;  // as in the file, fastest first
  std::int64_t rows = 0;           // product of all but the first
  std::int64_t cols = 0;           // the first
  std::size_t part = 0;            // which file of a split model
  std::uint64_t offset = 0;        // absolute, in that file
  std::uint64_t bytes = 0;
};

class Gguf {
 public:
  static Result<Gguf> open(const std::string& path);
  // One file's bytes; the caller keeps them.
  static Result<Gguf> parse(std::span<const std::byte> bytes);

  std::uint32_t version() const { return version_; }
  std::uint64_t alignment() const { return alignment_; }
  std::uint64_t file_bytes() const;
  std::uint64_t tensor_bytes() const;  // of all tensors, as stored
  const std::vector<GgufEntry>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  const GgufTensor* find_tensor(std::string_view name) const;
  const GgufValue* find(std::string_view key) const;

  // A missing key or another type is an Error that names the key and both types. Any integer type that holds a
  // non-negative value serves as uint.
  Result<std::uint64_t> get_uint(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<const std::vector<std::string>*> get_strings(std::string_view key) const;

  // bytes offset .. offset + out.size() of the tensor's data.
  Result<void> read(const GgufTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  friend class GgufParser;
  Gguf() = default;

  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<std::unique_ptr<ByteSource>> parts_;
  std::vector<GgufEntry> metadata_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace troupe
