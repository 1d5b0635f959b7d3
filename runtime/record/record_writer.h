// RecordWriter: appends events to a record (record.h has the file's layout).
//
//     auto writer = RecordWriter::create("run.record", header);
//     (*writer)->add(SessionLeft{7});
//     if (auto lost = (*writer)->write()) log_warning(lost->message);
//
// add() keeps the event in memory, write() hands over what is kept. The first part that cannot be written ends the
// record: its error is told once, later events are dropped, and what stands in the file stays good up to there.
// For one thread at a time. Nothing is synced: a record survives its process, not the machine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/result.h"
#include "runtime/fnv.h"
#include "runtime/record/record.h"
#include "runtime/replace_file.h"

namespace troupe {

class RecordWriter {
 public:
  // A new file, for its owner only: it holds what was said, as tokens. One that is there already is refused: the record
  // of an incident must not be lost to the next start.
  static Result<std::shared_ptr<RecordWriter>> create(const std::string& path, const RecordHeader& header);
  // Into anything else.
  RecordWriter(WritePart part, const RecordHeader& header);
  ~RecordWriter() { write(); }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void add(const RecordEvent& event);
  std::optional<Error> write();

 private:
  WritePart part_;  // empty once the record has ended
  std::string kept_;
  Fnv64 hash_;
};

}  // namespace troupe
