// The frame of a snapshot's file: sizes, and the checksum over all of it. See snapshot.h for the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/result.h"
#include "runtime/replace_file.h"

namespace troupe {

// `payload` must write exactly `payload_bytes`.
Result<void> write_snapshot_file(const std::string& path, std::string_view header, std::uint64_t payload_bytes,
                                 const std::function<void(const WritePart&)>& payload);

// An open file whose frame and checksum were found right.
class SnapshotFile {
 public:
  static Result<SnapshotFile> open(const std::string& path);
  SnapshotFile(SnapshotFile&& other) noexcept;
  SnapshotFile& operator=(SnapshotFile&&) = delete;
  ~SnapshotFile();

  const std::string& header() const { return header_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  // Reads the payload in order; the checksum is looked at again, as the file may have been changed since it was opened.
  Result<void> read_payload(const std::function<void(std::string_view part)>& take) const;

 private:
  SnapshotFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Result<void> read_frame();
  Result<void> read_all(const std::function<void(std::string_view part)>& take) const;
  Error wrong(const std::string& what) const;

  std::string path_;
  int file_;
  std::string header_;
  std::uint64_t payload_bytes_ = 0;
};

}  // namespace troupe
