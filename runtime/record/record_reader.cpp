#include "runtime/record/record_reader.h"

#include <cstring>
#include <new>
#include <utility>

#include "runtime/record/fields.h"

namespace troupe {
namespace {

template <class T>
void read_fields(std::string_view bytes, T& value) {
  const auto source = view_memory(std::as_bytes(std::span(bytes)));
  ByteReader in(*source);
  FieldReader get(in);
  get(value);
  if (in.remaining() > 0) throw FormatError("an event of it is longer than its fields");
}

template <std::size_t... Kinds>
RecordEvent event_of(std::size_t kind, std::string_view bytes, std::index_sequence<Kinds...>) {
  RecordEvent event;
  const auto read = [&]<std::size_t Kind>(std::integral_constant<std::size_t, Kind>) {
    if (kind == Kind) read_fields(bytes, event.emplace<Kind>());
    return kind == Kind;
  };
  if (!(read(std::integral_constant<std::size_t, Kinds>()) || ...)) throw FormatError("an event of no known kind");
  return event;
}

std::string_view bytes_of_number(const std::uint32_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteSource> source, std::string path)
    : source_(std::move(source)), in_(*source_), path_(std::move(path)) {}

Result<RecordReader> RecordReader::open(const std::string& path) {
  auto file = open_file(path);
  if (!file) return file.error();
  return begin(std::move(*file), path);
}

Result<RecordReader> RecordReader::view(std::string_view bytes, const std::string& path) {
  return begin(view_memory(std::as_bytes(std::span(bytes))), path);
}

Result<RecordReader> RecordReader::begin(std::unique_ptr<ByteSource> source, const std::string& path) {
  try {
    RecordReader reader(std::move(source), path);
    reader.read_header();
    return reader;
  } catch (const FormatError& error) {
    return Error{error.code, path + ": not a record, or a damaged one: " + error.what()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, path + ": no memory to read this record"};
  }
}

void RecordReader::read_header() {
  const std::string magic = in_.text("the first bytes", sizeof kRecordMagic);
  if (std::memcmp(magic.data(), kRecordMagic, sizeof kRecordMagic) != 0) {
    throw FormatError("it does not begin as one does");
  }
  const auto version = in_.number<std::uint32_t>("the version");
  if (version != kRecordVersion) {
    throw FormatError("it is of version " + std::to_string(version) + ", this program reads version " +
                          std::to_string(kRecordVersion),
                      ErrorCode::unsupported);
  }
  const auto size = in_.number<std::uint32_t>("the header's size");
  if (size > in_.remaining()) throw FormatError("its header is longer than the file");
  const std::string content = in_.text("the header", size);
  for (std::string_view part : {std::string_view(magic), bytes_of_number(version), bytes_of_number(size)}) {
    hash_.add(part);
  }
  check(content);
  read_fields(content, header_);
}

// `part` is the next of what the checksum that follows is of.
void RecordReader::check(std::string_view part) {
  hash_.add(part);
  if (in_.number<std::uint64_t>("a checksum") != hash_.value()) throw FormatError("a checksum does not fit");
}

std::optional<RecordEvent> RecordReader::read_event() {
  if (in_.remaining() == 0) return std::nullopt;
  torn_ = in_.remaining() < sizeof(std::uint32_t);
  if (torn_) return std::nullopt;
  const auto size = in_.number<std::uint32_t>("an event's size");
  if (size == 0) throw FormatError("an event of no kind");
  torn_ = in_.remaining() < std::uint64_t{size} + sizeof(std::uint64_t);
  if (torn_) return std::nullopt;
  hash_.add(bytes_of_number(size));
  const std::string content = in_.text("an event", size);
  check(content);
  return event_of(static_cast<std::uint8_t>(content[0]), std::string_view(content).substr(1),
                  std::make_index_sequence<std::variant_size_v<RecordEvent>>());
}

Result<std::optional<RecordEvent>> RecordReader::next() {
  if (torn_) return std::optional<RecordEvent>();
  const std::uint64_t at = in_.position();
  try {
    return read_event();
  } catch (const FormatError& error) {
    return Error{error.code, path_ + ": the record is damaged at byte " + std::to_string(at) + ": " + error.what()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, path_ + ": no memory for the event at byte " + std::to_string(at)};
  }
}

}  // namespace troupe
