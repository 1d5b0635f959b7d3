// Records in memory: their events taken out, changed, and written again with right checksums.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/record/record_reader.h"
#include "runtime/record/record_writer.h"

namespace troupe::test {

inline std::vector<RecordEvent> events_of(RecordReader reader) {
  std::vector<RecordEvent> events;
  for (;;) {
    auto event = reader.next();
    if (!event) throw std::runtime_error(event.error().message);
    if (!*event) return events;
    events.push_back(std::move(**event));
  }
}

inline std::string record_bytes(const RecordHeader& header, const std::vector<RecordEvent>& events) {
  std::string bytes;
  const WritePart append = [&](std::string_view part) {
    bytes += part;
    return true;
  };
  RecordWriter writer(append, header);
  for (const RecordEvent& event : events) writer.add(event);
  writer.write();
  return bytes;
}

inline bool any_event(const RecordEvent&) {
  return true;
}

// The so-many-th event of a kind, of those that fit.
template <class Kind>
Kind& nth(std::vector<RecordEvent>& events, std::size_t number, bool (*fits)(const RecordEvent&) = any_event) {
  for (RecordEvent& event : events) {
    if (auto* found = std::get_if<Kind>(&event); found != nullptr && fits(event) && number-- == 0) return *found;
  }
  throw std::runtime_error("the record has not so many of these");
}

}  // namespace troupe::test
