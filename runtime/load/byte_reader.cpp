#include "runtime/load/byte_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, std::uint64_t size, std::string path)
      : descriptor_(descriptor), size_(size), path_(std::move(path)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(descriptor_); }

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) {
        done += static_cast<std::size_t>(got);
        continue;
      }
      const std::string why = got == 0 ? "the file ends there now" : std::strerror(errno);
      throw FormatError(path_ + ": cannot read byte " + std::to_string(offset + done) + ": " + why, ErrorCode::io);
    }
  }

 private:
  int descriptor_;
  std::uint64_t size_;
  std::string path_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) throw FormatError("read past the end");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
  // Without O_NONBLOCK the opening of a named pipe would wait for its writer; regular files do not care.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return Error{code, path + ": cannot open: " + std::strerror(errno)};
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return Error{ErrorCode::bad_input, path + ": not a regular file"};
  }
  return std::unique_ptr<ByteSource>(
      std::make_unique<FileSource>(descriptor, static_cast<std::uint64_t>(status.st_size), path));
}

std::unique_ptr<ByteSource> view_memory(std::span<const std::byte> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

void ByteReader::bytes(std::span<std::byte> out, const char* what) {
  if (out.size() > remaining()) {
    throw FormatError("the file ends at byte " + std::to_string(source_.size()) + ", inside " + what + " at byte " +
                      std::to_string(position_));
  }
  while (!out.empty()) {
    if (position_ < window_at_ || position_ >= window_at_ + window_size_) {
      window_at_ = position_;
      window_size_ = static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, remaining()));
      source_.read(window_at_, std::span(window_).first(window_size_));
    }
    const std::size_t at = static_cast<std::size_t>(position_ - window_at_);
    const std::size_t size = std::min(out.size(), window_size_ - at);
    std::memcpy(out.data(), window_.data() + at, size);
    out = out.subspan(size);
    position_ += size;
  }
}

std::uint64_t ByteReader::text_size(const char* what, std::uint64_t longest) {
  const std::uint64_t at = position_;
  const auto length = number<std::uint64_t>(what);
  if (length > longest || length > remaining()) {
    throw FormatError(std::string(what) + " at byte " + std::to_string(at) + " claims " + std::to_string(length) +
                      " bytes; " + std::to_string(std::min(longest, remaining())) + " are possible");
  }
  return length;
}

std::string ByteReader::text(const char* what, std::uint64_t size) {
  std::string value(static_cast<std::size_t>(size), '\0');
  bytes(std::as_writable_bytes(std::span(value)), what);
  return value;
}

std::uint64_t ByteReader::count(const char* what, std::uint64_t item_bytes) {
  const std::uint64_t at = position_;
  const auto claimed = number<std::uint64_t>(what);
  if (claimed > remaining() / item_bytes) {
    throw FormatError(std::string(what) + " at byte " + std::to_string(at) + " is " + std::to_string(claimed) +
                      "; the rest of the file cannot hold that many");
  }
  return claimed;
}

}  // namespace troupe
