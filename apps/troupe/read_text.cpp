#include "apps/troupe/read_text.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::app {
namespace {

// An open file, or stdin, under the name that its errors give it.
class TextFile {
 public:
  explicit TextFile(const std::string& path)
      : is_stdin_(path == "-"),
        name_(is_stdin_ ? "stdin" : path),
        descriptor_(is_stdin_ ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() {
    if (!is_stdin_ && descriptor_ >= 0) ::close(descriptor_);
  }

  Result<std::string> read() const {
    if (descriptor_ < 0) return refused("cannot open", errno == ENOENT ? ErrorCode::not_found : ErrorCode::io);
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) return refused("cannot look at it", ErrorCode::io);
    if (S_ISDIR(status.st_mode)) return Error{ErrorCode::bad_input, name_ + ": a folder; a file with text is needed"};
    if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > kMostText) return too_long();
    try {
      return read_bytes();
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, name_ + ": not enough memory to hold its text; give a shorter one"};
    }
  }

 private:
  Result<std::string> read_bytes() const {
    std::string text;
    std::array<char, 1 << 16> piece;
    while (true) {
      const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return refused("cannot read", ErrorCode::io);
      if (got == 0) return text;
      text.append(piece.data(), static_cast<std::size_t>(got));
      if (text.size() > kMostText) return too_long();
    }
  }

  Error refused(const char* what, ErrorCode code) const {
    return {code, name_ + ": " + what + ": " + std::strerror(errno)};
  }
  Error too_long() const {
    return {ErrorCode::bad_input, name_ + ": more than 1 GiB; give a shorter text, or part of it"};
  }

  bool is_stdin_;
  std::string name_;
  int descriptor_;
};

}  // namespace

Result<std::string> read_text(const std::string& path_or_dash) {
  return TextFile(path_or_dash).read();
}

}  // namespace troupe::app
