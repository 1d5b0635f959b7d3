#include "runtime/snapshot_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "runtime/fnv.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are written as they lie in memory");

constexpr char kMagic[16] = {'t', 'r', 'o', 'u', 'p', 'e', ' ', 's', 'e', 's', 's', 'i', 'o', 'n', '\r', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kLongestHeader = std::uint64_t{32} << 20;  // a million tokens, and their text
constexpr std::size_t kPart = std::size_t{1} << 20;

struct Frame {
  char magic[16];
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t header_bytes;
  std::uint64_t payload_bytes;
};
static_assert(sizeof(Frame) == 40);

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// All of [at, at + size), or false with errno (0: the file ends before).
bool read_at(int file, std::uint64_t at, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::pread(file, to, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) errno = 0;
      return false;
    }
    at += static_cast<std::uint64_t>(got);
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Result<void> write_snapshot_file(const std::string& path, std::string_view header, std::uint64_t payload_bytes,
                                 const std::function<void(const WritePart&)>& payload) {
  return replace_file(path, [&](const WritePart& write) {
    Fnv64 hash;
    const WritePart hashed = [&](std::string_view part) {
      hash.add(part);
      return write(part);
    };
    Frame frame{{}, kVersion, 0, header.size(), payload_bytes};
    std::memcpy(frame.magic, kMagic, sizeof kMagic);
    if (!hashed(bytes_of(frame)) || !hashed(header)) return;
    payload(hashed);
    write(bytes_of(hash.value()));
  });
}

Result<SnapshotFile> SnapshotFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return Error{errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                 path + ": cannot open: " + std::strerror(errno)};
  }
  SnapshotFile opened(path, file);
  if (auto read = opened.read_frame(); !read) return read.error();
  return opened;
}

SnapshotFile::SnapshotFile(SnapshotFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      header_(std::move(other.header_)),
      payload_bytes_(other.payload_bytes_) {}

SnapshotFile::~SnapshotFile() {
  if (file_ >= 0) ::close(file_);
}

Error SnapshotFile::wrong(const std::string& what) const {
  return {ErrorCode::bad_input, path_ + ": not a saved session, or a damaged one: " + what};
}

Result<void> SnapshotFile::read_frame() {
  struct stat found {};
  if (::fstat(file_, &found) != 0) return Error{ErrorCode::io, path_ + ": " + std::strerror(errno)};
  if (!S_ISREG(found.st_mode)) return Error{ErrorCode::bad_input, path_ + " is not a regular file"};
  const auto size = static_cast<std::uint64_t>(found.st_size), least = sizeof(Frame) + sizeof(std::uint64_t);
  Frame frame{};
  if (size < least || !read_at(file_, 0, reinterpret_cast<char*>(&frame), sizeof frame))
    return wrong("it is too short");
  if (std::memcmp(frame.magic, kMagic, sizeof kMagic) != 0) return wrong("it does not begin as one does");
  if (frame.version != kVersion || frame.reserved != 0) {
    return Error{ErrorCode::unsupported, path_ + ": a saved session of version " + std::to_string(frame.version) +
                                             "; this program reads version " + std::to_string(kVersion)};
  }
  const std::uint64_t inside = size - least;
  if (frame.header_bytes > std::min(inside, kLongestHeader) || frame.payload_bytes != inside - frame.header_bytes) {
    return wrong("its length is not the one it tells");
  }
  header_.resize(static_cast<std::size_t>(frame.header_bytes));
  payload_bytes_ = frame.payload_bytes;
  if (!read_at(file_, sizeof frame, header_.data(), header_.size())) return wrong("its header cannot be read");
  return read_all([](std::string_view) {});
}

Result<void> SnapshotFile::read_payload(const std::function<void(std::string_view part)>& take) const {
  return read_all(take);
}

// `take` gets the payload; the checksum is of the file from its first byte on.
Result<void> SnapshotFile::read_all(const std::function<void(std::string_view part)>& take) const {
  const std::uint64_t begin = sizeof(Frame) + header_.size(), end = begin + payload_bytes_;
  Fnv64 hash;
  std::string part(kPart, '\0');
  for (std::uint64_t at = 0; at < end;) {
    const std::uint64_t border = at < begin ? begin : end;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPart, border - at));
    if (!read_at(file_, at, part.data(), size)) return wrong("it cannot be read to its end");
    hash.add(std::string_view(part).substr(0, size));
    if (at >= begin) take(std::string_view(part).substr(0, size));
    at += size;
  }
  std::uint64_t expected = 0;
  if (!read_at(file_, end, reinterpret_cast<char*>(&expected), sizeof expected)) return wrong("it has no checksum");
  if (hash.value() != expected) return wrong("its checksum does not fit");
  return {};
}

}  // namespace troupe
