// RecordReader: the events of a record, in order (record.h has the file's layout).
//
//     auto record = RecordReader::open("run.record");
//     for (;;) {
//       auto event = record->next();
//       if (!event || !*event) break;
//     }
//
// Whatever the file holds, it is an event, the end, or an Error that says where the file is damaged: nothing is
// believed before its checksum was compared, and no length makes memory that the file's own bytes would not fill.
// A checksum keeps no enemy out: what events say (places, tokens, numbers) is looked at by who uses them (replay.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/result.h"
#include "runtime/fnv.h"
#include "runtime/load/byte_reader.h"
#include "runtime/record/record.h"

namespace troupe {

class RecordReader {
 public:
  static Result<RecordReader> open(const std::string& path);
  // `bytes` outlive the reader. `path` is for its sentences.
  static Result<RecordReader> view(std::string_view bytes, const std::string& path);

  const std::string& path() const { return path_; }
  const RecordHeader& header() const { return header_; }
  // Nothing: the record ends.
  Result<std::optional<RecordEvent>> next();
  // The file ended within an event, as one does whose process was killed or whose disk was full.
  bool torn() const { return torn_; }

 private:
  RecordReader(std::unique_ptr<ByteSource> source, std::string path);
  static Result<RecordReader> begin(std::unique_ptr<ByteSource> source, const std::string& path);
  void read_header();
  std::optional<RecordEvent> read_event();
  void check(std::string_view part);

  std::unique_ptr<ByteSource> source_;
  ByteReader in_;
  std::string path_;
  RecordHeader header_;
  Fnv64 hash_;
  bool torn_ = false;
};

}  // namespace troupe
