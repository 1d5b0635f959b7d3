// ByteSource and ByteReader: the only code that touches the raw bytes of a model's file, or of a record's.
//
// A ByteReader walks a source front to back. Every read is bounded by the source's size, every sum and product of
// sizes goes through checked arithmetic, and nothing is allocated that the remaining bytes could not fill. A violation
// throws FormatError with the offset; whoever owns the parse (Gguf::open, RecordReader) turns it into a Result.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/result.h"

namespace troupe {

struct FormatError : std::runtime_error {
  explicit FormatError(const std::string& what, ErrorCode error_code = ErrorCode::bad_input)
      : std::runtime_error(what), code(error_code) {}
  ErrorCode code;
};

// Bytes at rest: a file, or memory.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset`; throws FormatError (io) on a short or failed read. Safe from several threads.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// Refuses what is not a regular file, by name. Reads with pread: no mapping, so a file cut short meanwhile is an error
// and not a signal.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);
// A view: the caller keeps the memory.
std::unique_ptr<ByteSource> view_memory(std::span<const std::byte> bytes);

inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) throw FormatError("a sum of sizes overflows");
  return a + b;
}
inline std::uint64_t checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) throw FormatError("a product of sizes overflows");
  return a * b;
}
// alignment is a power of two.
inline std::uint64_t checked_align(std::uint64_t value, std::uint64_t alignment) {
  return checked_add(value, alignment - 1) & ~(alignment - 1);
}

// Numbers are read as this machine stores them.
static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

class ByteReader {
 public:
  explicit ByteReader(const ByteSource& source)
      : source_(source), window_(static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, source.size()))) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return source_.size() - position_; }

  // A little-endian integer or IEEE float.
  template <class T>
  T number(const char* what) {
    T value;
    bytes(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }
  // A u64 length of bytes that follow: more than `longest`, or than the rest of the file holds, is refused.
  std::uint64_t text_size(const char* what, std::uint64_t longest);
  // So many bytes; allocates them, so the caller has looked at `size`.
  std::string text(const char* what, std::uint64_t size);
  // A u64 count of items of which each takes at least `item_bytes`: more than the rest of the file holds is refused.
  std::uint64_t count(const char* what, std::uint64_t item_bytes);

 private:
  static constexpr std::size_t kWindow = 64 * 1024;
  void bytes(std::span<std::byte> out, const char* what);

  const ByteSource& source_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> window_;  // bytes window_at_ .. window_at_ + window_size_ of the source
  std::uint64_t window_at_ = 0;
  std::size_t window_size_ = 0;
};

}  // namespace troupe
