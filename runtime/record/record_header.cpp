#include "runtime/record/record_header.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "kernels/math.h"
#include "runtime/memory_limit.h"

namespace troupe {
namespace {

std::string in_hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

RecordHeader record_header(const Engine& engine, const std::string& model, const EngineOptions& options) {
  const PagePool& pages = *engine.pages();
  return {engine.fingerprint(),
          kNumericsVersion,
          model,
          engine.describe(),
          static_cast<std::uint8_t>(options.kv_type),
          options.expand_to_f32,
          engine.context(),
          engine.max_rows(),
          static_cast<std::uint64_t>(pages.total()) * pages.layout().page_bytes()};
}

Result<std::shared_ptr<RecordWriter>> record_of(const Engine& engine, const std::string& model,
                                                const EngineOptions& options, const std::string& file) {
  if (file.empty()) return std::shared_ptr<RecordWriter>();
  return RecordWriter::create(file, record_header(engine, model, options));
}

Result<EngineOptions> replay_options(const RecordHeader& header) {
  if (header.kv_type >= std::size(kKvTypes)) {
    return Error{ErrorCode::bad_input, "the record's keys and values are of no known type (" +
                                           std::to_string(header.kv_type) + "): it was made by another program"};
  }
  EngineOptions options;
  options.kv_type = kKvTypes[header.kv_type];
  options.expand_to_f32 = header.expand_to_f32;
  options.context = header.context;
  options.max_rows = header.max_rows;
  options.kv_memory = std::min(header.kv_memory, memory_limit() / 2);
  return options;
}

Result<void> check_engine(const RecordHeader& header, const Engine& engine) {
  if (header.numerics != kNumericsVersion) {
    return Error{ErrorCode::unsupported, "the record was made with version " + std::to_string(header.numerics) +
                                             " of the numerics, this program computes version " +
                                             std::to_string(kNumericsVersion) + ": replay it with the program of then"};
  }
  if (header.fingerprint != engine.fingerprint()) {
    return Error{ErrorCode::unsupported, "the record is of the fingerprint " + in_hex(header.fingerprint) +
                                             ", this model's is " + in_hex(engine.fingerprint()) +
                                             ": give the model that ran with --model (it was " + header.model + ")"};
  }
  if (header.max_rows < 1 || header.max_rows > engine.max_rows() || header.context > engine.context()) {
    return Error{ErrorCode::unsupported, "the record's launches have up to " + std::to_string(header.max_rows) +
                                             " rows and " + std::to_string(header.context) +
                                             " tokens a session, this engine's " + std::to_string(engine.max_rows()) +
                                             " and " + std::to_string(engine.context())};
  }
  return {};
}

}  // namespace troupe
