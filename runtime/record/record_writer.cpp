#include "runtime/record/record_writer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "runtime/record/fields.h"

namespace troupe {
namespace {

// An open descriptor, closed with the last WritePart that has it.
class Appended {
 public:
  explicit Appended(int file) : file_(file) {}
  Appended(const Appended&) = delete;
  Appended& operator=(const Appended&) = delete;
  ~Appended() { ::close(file_); }

  bool append(std::string_view part) const {
    while (!part.empty()) {
      const ssize_t done = ::write(file_, part.data(), part.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      part.remove_prefix(static_cast<std::size_t>(done));
    }
    return true;
  }

 private:
  int file_;
};

}  // namespace

Result<std::shared_ptr<RecordWriter>> RecordWriter::create(const std::string& path, const RecordHeader& header) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    if (errno == EEXIST) {
      return Error{ErrorCode::bad_input,
                   path + " is there already, and a record is never overwritten: move it, or give another name"};
    }
    return Error{ErrorCode::io, path + ": cannot make this record: " + std::strerror(errno)};
  }
  auto appended = std::make_shared<const Appended>(file);
  auto writer =
      std::make_shared<RecordWriter>([appended](std::string_view part) { return appended->append(part); }, header);
  if (auto failed = writer->write()) return Error{failed->code, path + ": " + failed->message};
  return writer;
}

RecordWriter::RecordWriter(WritePart part, const RecordHeader& header) : part_(std::move(part)) {
  std::string content;
  FieldWriter put(content);
  put(header);
  kept_.append(kRecordMagic, sizeof kRecordMagic);
  FieldWriter frame(kept_);
  frame(kRecordVersion, static_cast<std::uint32_t>(content.size()));
  kept_ += content;
  hash_.add(kept_);
  frame(hash_.value());
}

void RecordWriter::add(const RecordEvent& event) {
  if (!part_) return;
  const std::size_t begin = kept_.size();
  FieldWriter put(kept_);
  put(std::uint32_t{0}, static_cast<std::uint8_t>(event.index()));
  std::visit([&](const auto& one) { put(one); }, event);
  const auto size = static_cast<std::uint32_t>(kept_.size() - begin - sizeof(std::uint32_t));
  std::memcpy(kept_.data() + begin, &size, sizeof size);
  hash_.add(std::string_view(kept_).substr(begin));
  put(hash_.value());
}

std::optional<Error> RecordWriter::write() {
  if (!part_ || kept_.empty()) return std::nullopt;
  errno = 0;
  const bool done = part_(kept_);
  kept_.clear();
  if (done) return std::nullopt;
  part_ = nullptr;
  return Error{ErrorCode::io, std::string("the record ends here, it can be written no further: ") +
                                  (errno != 0 ? std::strerror(errno) : "no room")};
}

}  // namespace troupe
