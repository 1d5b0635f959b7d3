// What a record says of the engine that ran, and how an engine is opened by it.
#pragma once

#include <memory>
#include <string>

#include "kernels/result.h"
#include "runtime/engine.h"
#include "runtime/record/record.h"
#include "runtime/record/record_writer.h"

namespace troupe {

// `engine` was opened from `model` with `options`.
RecordHeader record_header(const Engine& engine, const std::string& model, const EngineOptions& options);

// A new record in `file` of such an engine; null where `file` is empty: nothing is recorded.
Result<std::shared_ptr<RecordWriter>> record_of(const Engine& engine, const std::string& model,
                                                const EngineOptions& options, const std::string& file);

// Options of an engine that gives the record's bits, with as much memory for keys and values as there was, but half of
// this machine's at most: a file has no say in more.
Result<EngineOptions> replay_options(const RecordHeader& header);

// An Error, which names both fingerprints, when `engine` would not give the record's bits, or has no room for its rows.
Result<void> check_engine(const RecordHeader& header, const Engine& engine);

}  // namespace troupe
