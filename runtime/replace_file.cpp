#include "runtime/replace_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {
namespace {

Error failed(const std::string& path, const std::string& what) {
  return {ErrorCode::io, path + ": " + what + ": " + std::strerror(errno)};
}

Error refused(const std::string& path, const std::string& what) {
  return {ErrorCode::bad_input, path + " is " + what + "; name another file"};
}

// What the file will be named, and the mode that it keeps.
struct Target {
  std::filesystem::path path;
  mode_t mode = S_IRUSR | S_IWUSR;
};

Result<Target> find_target(const std::string& path) {
  Target target;
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) return refused(path, "not a regular file");
    if (::access(path.c_str(), W_OK) != 0) return failed(path, "cannot write");
    target.mode = found.st_mode & 0777;
  } else if (errno != ENOENT) {
    return failed(path, "cannot write");
  } else if (::lstat(path.c_str(), &found) == 0) {
    return refused(path, "a link to nothing");
  }
  std::error_code error;
  target.path = std::filesystem::absolute(std::filesystem::weakly_canonical(path, error), error);
  if (error) return Error{ErrorCode::io, path + ": cannot write: " + error.message()};
  return target;
}

// A file that goes, name and all, unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& folder)
      : name_((folder / ".troupe-XXXXXX").string()), file_(::mkostemp(name_.data(), O_CLOEXEC)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (file_ >= 0) ::close(file_);
    if (made_) ::unlink(name_.c_str());
  }

  bool made() const { return made_; }

  bool write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(file_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool finish(mode_t mode) {
    return ::fchmod(file_, mode) == 0 && ::fsync(file_) == 0 && ::close(std::exchange(file_, -1)) == 0;
  }

  bool rename(const std::filesystem::path& to) {
    if (std::rename(name_.c_str(), to.c_str()) != 0) return false;
    made_ = false;
    return true;
  }

 private:
  std::string name_;
  int file_;
  bool made_ = file_ >= 0;
};

// So that the new name outlives a power cut, too.
bool sync_folder(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return false;
  const bool synced = ::fsync(file) == 0;
  const int reason = errno;
  ::close(file);
  errno = reason;
  return synced;
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view content) {
  return replace_file(path, [content](const WritePart& write) { write(content); });
}

Result<void> replace_file(const std::string& path, const std::function<void(const WritePart&)>& fill) {
  auto target = find_target(path);
  if (!target) return target.error();
  const std::filesystem::path folder = target->path.parent_path();
  Temporary file(folder);
  if (!file.made()) return failed(path, "cannot write into its folder");
  bool written = true;
  fill([&](std::string_view part) { return written = written && file.write(part); });
  if (!written || !file.finish(target->mode)) return failed(path, "cannot write");
  if (!file.rename(target->path)) return failed(path, "cannot rename the written file to this");
  if (!sync_folder(folder)) return failed(path, "written, but its folder cannot be synced");
  return {};
}

}  // namespace troupe
