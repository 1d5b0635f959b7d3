#include "runtime/load/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "runtime/load/split_name.h"
#include "runtime/text/printable.h"

namespace troupe {
namespace {

constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kLongestKey = 65535;
constexpr std::uint64_t kLongestName = 1024;
constexpr std::uint64_t kMostDims = 4;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
constexpr std::uint64_t kLargestAlignment = 1 << 20;
constexpr std::uint64_t kLongestString = std::uint64_t{16} << 20;  // chat templates take some KiB
// A header may take kHeaderMemory and the file's own size in memory, of which no more than kMostOfSize counts: a file
// of holes claims any size for nothing. 262,144 tokens and as many merges take 40 MB.
constexpr std::uint64_t kHeaderMemory = std::uint64_t{48} << 20, kMostOfSize = std::uint64_t{64} << 20;
// What an entry takes beside its strings: itself, twice while its vector grows, and a node of the index.
constexpr std::uint64_t kEntryMemory = 400, kTensorMemory = 800;

std::uint64_t header_budget(std::uint64_t file_size) {
  return kHeaderMemory + std::min(file_size, kMostOfSize);
}

[[noreturn]] void refuse(const std::string& what) {
  throw FormatError(what);
}

// Names of types that exist elsewhere but not here, so that the refusal says what the file holds.
const char* foreign_type(std::uint32_t number) {
  struct Named {
    std::uint32_t number;
    const char* name;
  };
  static constexpr Named kNames[] = {
      {4, "Q4_2"},      {5, "Q4_3"},      {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"},
      {17, "IQ2_XS"},   {18, "IQ3_XXS"},  {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},
      {24, "I8"},       {25, "I16"},      {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"}, {31, "Q4_0_4_4"},
      {32, "Q4_0_4_8"}, {33, "Q4_0_8_8"}, {34, "TQ1_0"}, {35, "TQ2_0"},  {39, "MXFP4"}};
  for (const Named& one : kNames) {
    if (one.number == number) return one.name;
  }
  return "not a number that is known";
}

std::string known_types() {
  std::string out;
  for (std::uint32_t number = 0; number < 256; ++number) {
    if (const TypeTraits* type = find_gguf_type(number)) out += (out.empty() ? "" : ", ") + std::string(type->name);
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  return "'" + printable(text, 60) + "'";
}

template <class T>
T value_of(const Result<T>& result) {
  if (!result) throw FormatError(result.error().message, result.error().code);
  return *result;
}

std::uint64_t split_count(const Gguf& file) {
  if (file.find("split.count") == nullptr) return 1;
  return std::max<std::uint64_t>(value_of(file.get_uint("split.count")), 1);
}

}  // namespace

void GgufParser::open_parts(Gguf& out, const std::string& path) {
  const std::optional<SplitName> split = SplitName::parse(path);
  if (split && split->number != 1) {
    refuse(path + " is part " + std::to_string(split->number) + " of a split model: open " + split->part(1));
  }
  add_file(out, path);
  const std::uint64_t count = split_count(out);
  const std::string says = path + ": split.count is " + std::to_string(count) + ", but ";
  if (count > 1 && !split) {
    refuse(says + "the name does not end in -00001-of-" + std::to_string(count) +
           ".gguf, so the other parts cannot be found");
  }
  if (split && split->count != count) refuse(says + "the name says " + std::to_string(split->count) + " parts");
  for (std::uint64_t i = 2; i <= count; ++i) add_file(out, split->part(i));
  if (out.find("split.tensors.count") == nullptr) return;
  const std::uint64_t tensors = value_of(out.get_uint("split.tensors.count"));
  if (tensors != out.tensors_.size()) {
    refuse(path + ": split.tensors.count is " + std::to_string(tensors) + ", but the parts hold " +
           std::to_string(out.tensors_.size()) + " tensors");
  }
}

// One more part. Its errors begin with its own path: of several files, the one at fault.
void GgufParser::add_file(Gguf& out, const std::string& path) {
  auto source = open_file(path);
  if (!source) throw FormatError(source.error().message, source.error().code);
  try {
    add_part(out, std::move(*source));
  } catch (const FormatError& error) {
    const std::string what = error.what();
    throw FormatError(what.starts_with(path) ? what : path + ": " + what, error.code);
  }
}

void GgufParser::add_part(Gguf& out, std::unique_ptr<ByteSource> source) {
  const bool first = out.parts_.empty();
  out.parts_.push_back(std::move(source));
  GgufParser(out, *out.parts_.back()).parse(first);
}

GgufParser::GgufParser(Gguf& out, const ByteSource& source)
    : out_(out), reader_(source), size_(source.size()), budget_(header_budget(source.size())) {}

// Small items grow in memory (a string of one byte takes 32), so that a hostile header could take many times its size.
void GgufParser::spend(std::uint64_t bytes) {
  if (bytes > budget_) {
    refuse("the header up to byte " + std::to_string(reader_.position()) + " would take more than " +
           std::to_string(header_budget(size_) >> 20) + " MiB of memory; no model's does");
  }
  budget_ -= bytes;
}

// A string that will stand in memory `copies` times, with `beside` bytes around it: paid for before it is allocated.
std::string GgufParser::read_text(const char* what, std::uint64_t longest, std::uint64_t copies, std::uint64_t beside) {
  const std::uint64_t size = reader_.text_size(what, longest);
  spend(beside + copies * size);
  return reader_.text(what, size);
}

void GgufParser::parse(bool first) {
  read_preamble();
  read_metadata(first);
  std::vector<GgufTensor> tensors;
  for (std::uint64_t i = 0; i < tensor_count_; ++i) tensors.push_back(read_tensor());
  place(tensors);
  for (GgufTensor& tensor : tensors) {
    if (!out_.by_name_.emplace(tensor.name, out_.tensors_.size()).second) {
      refuse("tensor " + in_quotes(tensor.name) + " is there twice");
    }
    out_.tensors_.push_back(std::move(tensor));
  }
}

void GgufParser::read_preamble() {
  const auto magic = reader_.number<std::uint32_t>("the magic number");
  if (magic != kGgufMagic) refuse("not a GGUF file: it does not begin with 'GGUF' at byte 0");
  const auto version = reader_.number<std::uint32_t>("the version");
  if (version != 2 && version != 3) {
    if (version == 0x02000000u || version == 0x03000000u)
      refuse("a big-endian GGUF file (version at byte 4); only little-endian ones are read");
    refuse("GGUF version " + std::to_string(version) + " at byte 4; versions 2 and 3 are read");
  }
  out_.version_ = version;
  // A tensor entry takes at least 32 bytes (name length, one dimension, type, offset), a metadata entry at least 13.
  tensor_count_ = reader_.count("the tensor count", 32);
  entry_count_ = reader_.count("the metadata count", 13);
}

// Of a later part only its number is of use: the first has all that describes the model.
void GgufParser::read_metadata(bool first) {
  for (std::uint64_t i = 0; i < entry_count_; ++i) {
    const std::string at = " at byte " + std::to_string(reader_.position());
    std::string key = read_text("a metadata key", kLongestKey, 2, kEntryMemory);
    if (key.empty()) refuse("an empty metadata key" + at);
    const auto type = reader_.number<std::uint32_t>("a metadata type");
    if (type > static_cast<std::uint32_t>(GgufType::f64)) {
      refuse("metadata " + in_quotes(key) + at + " has type " + std::to_string(type) + "; types 0 to 12 exist");
    }
    GgufValue value;
    try {
      value = read_value(static_cast<GgufType>(type));
    } catch (const FormatError& error) {
      throw FormatError("metadata " + in_quotes(key) + at + ": " + error.what(), error.code);
    }
    if (!first) {
      if (key == "split.no") check_split_number(value);
      continue;
    }
    if (!out_.by_key_.emplace(key, out_.metadata_.size()).second)
      refuse("metadata " + in_quotes(key) + at + " is there twice");
    out_.metadata_.push_back({std::move(key), std::move(value)});
  }
  if (first) read_alignment();
}

void GgufParser::check_split_number(const GgufValue& value) const {
  const std::uint64_t expected = out_.parts_.size() - 1;  // counted from 0
  const auto* number = std::get_if<std::uint64_t>(&value.value);
  if (number == nullptr || *number != expected) {
    refuse("split.no is not " + std::to_string(expected) + ": this file is not the part that its name says");
  }
}

void GgufParser::read_alignment() {
  if (out_.find("general.alignment") == nullptr) return;
  const std::uint64_t alignment = value_of(out_.get_uint("general.alignment"));
  if (!std::has_single_bit(alignment) || alignment > kLargestAlignment || alignment < 8) {
    refuse("general.alignment is " + std::to_string(alignment) + "; it must be a power of two from 8 to 1048576");
  }
  out_.alignment_ = alignment;
}

GgufValue GgufParser::read_value(GgufType type) {
  const char* what = "a metadata value";
  switch (type) {
    case GgufType::u8:
      return {type, std::uint64_t{reader_.number<std::uint8_t>(what)}};
    case GgufType::u16:
      return {type, std::uint64_t{reader_.number<std::uint16_t>(what)}};
    case GgufType::u32:
      return {type, std::uint64_t{reader_.number<std::uint32_t>(what)}};
    case GgufType::u64:
      return {type, reader_.number<std::uint64_t>(what)};
    case GgufType::i8:
      return {type, std::int64_t{reader_.number<std::int8_t>(what)}};
    case GgufType::i16:
      return {type, std::int64_t{reader_.number<std::int16_t>(what)}};
    case GgufType::i32:
      return {type, std::int64_t{reader_.number<std::int32_t>(what)}};
    case GgufType::i64:
      return {type, reader_.number<std::int64_t>(what)};
    case GgufType::f32:
      return {type, double{reader_.number<float>(what)}};
    case GgufType::f64:
      return {type, reader_.number<double>(what)};
    case GgufType::boolean: {
      const auto byte = reader_.number<std::uint8_t>(what);
      if (byte > 1)
        refuse("a boolean at byte " + std::to_string(reader_.position() - 1) + " is " + std::to_string(byte));
      return {type, byte == 1};
    }
    case GgufType::string:
      return {type, read_text(what, kLongestString, 1, 0)};
    case GgufType::array:
      return {type, read_array()};
  }
  refuse("a metadata type that does not exist");
}

GgufArray GgufParser::read_array() {
  static constexpr std::uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};  // a string's length takes 8
  const std::string at = " at byte " + std::to_string(reader_.position());
  const auto number = reader_.number<std::uint32_t>("an array's element type");
  if (number > static_cast<std::uint32_t>(GgufType::f64))
    refuse("an array" + at + " has element type " + std::to_string(number));
  const auto element = static_cast<GgufType>(number);
  if (element == GgufType::array) refuse("an array of arrays" + at + "; none is known to be used");
  const std::uint64_t count = reader_.count("an array's length", kBytes[number]);
  GgufArray array{element, {}};
  switch (element) {
    case GgufType::string:
      array.values = read_elements<std::string>(element, count);
      break;
    case GgufType::f32:
    case GgufType::f64:
      array.values = read_elements<double>(element, count);
      break;
    case GgufType::i8:
    case GgufType::i16:
    case GgufType::i32:
    case GgufType::i64:
      array.values = read_elements<std::int64_t>(element, count);
      break;
    default:
      array.values = read_elements<std::uint64_t>(element, count);
      break;
  }
  return array;
}

template <class T>
std::vector<T> GgufParser::read_elements(GgufType element, std::uint64_t count) {
  spend(checked_multiply(count, sizeof(T)));
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    GgufValue one = read_value(element);
    if (const bool* held = std::get_if<bool>(&one.value)) one.value = std::uint64_t{*held};
    values.push_back(std::move(std::get<T>(one.value)));
  }
  return values;
}

GgufTensor GgufParser::read_tensor() {
  const std::string at = " at byte " + std::to_string(reader_.position());
  GgufTensor tensor;
  tensor.name = read_text("a tensor name", kLongestName, 3, kTensorMemory);
  if (tensor.name.empty()) refuse("a tensor without a name" + at);
  tensor.part = out_.parts_.size() - 1;
  const auto dims = reader_.number<std::uint32_t>("a tensor's dimension count");
  if (dims < 1 || dims > kMostDims) {
    refuse("tensor " + in_quotes(tensor.name) + at + " has " + std::to_string(dims) +
           " dimensions; 1 to 4 are possible");
  }
  for (std::uint32_t d = 0; d < dims; ++d) {
    const auto extent = reader_.number<std::uint64_t>("a tensor's dimension");
    if (extent == 0 || extent > kMostElements) {
      refuse("tensor " + in_quotes(tensor.name) + at + " has a dimension of " + std::to_string(extent));
    }
    tensor.dims.push_back(static_cast<std::int64_t>(extent));
  }
  const auto type = reader_.number<std::uint32_t>("a tensor's type");
  const TypeTraits* known = find_gguf_type(type);
  if (known == nullptr) {
    throw FormatError("tensor " + in_quotes(tensor.name) + at + " has type " + std::to_string(type) + " (" +
                          foreign_type(type) + "), which this build does not read; it reads " + known_types(),
                      ErrorCode::unsupported);
  }
  tensor.type = known->type;
  tensor.offset = reader_.number<std::uint64_t>("a tensor's offset");
  read_shape(tensor);
  return tensor;
}

void GgufParser::read_shape(GgufTensor& tensor) {
  const TypeTraits& type = traits(tensor.type);
  std::uint64_t elements = 1;
  for (std::int64_t extent : tensor.dims) {
    if (static_cast<std::uint64_t>(extent) > kMostElements / elements) {
      refuse("tensor " + in_quotes(tensor.name) + " has more than 2^48 elements");
    }
    elements *= static_cast<std::uint64_t>(extent);
  }
  tensor.cols = tensor.dims[0];
  tensor.rows = static_cast<std::int64_t>(elements) / tensor.cols;
  if (tensor.cols % type.block != 0) {
    refuse("tensor " + in_quotes(tensor.name) + " has rows of " + std::to_string(tensor.cols) + " elements; type " +
           std::string(type.name) + " needs a multiple of " + std::to_string(type.block));
  }
  tensor.bytes = checked_multiply(elements / type.block, type.bytes);
}

// Offsets become absolute; each tensor must be aligned, inside the file, and apart from the others.
void GgufParser::place(std::vector<GgufTensor>& tensors) {
  const std::uint64_t data = checked_align(reader_.position(), out_.alignment_);
  std::vector<const GgufTensor*> order;
  for (GgufTensor& tensor : tensors) {
    if (tensor.offset % out_.alignment_ != 0) {
      refuse("tensor " + in_quotes(tensor.name) + " begins at data offset " + std::to_string(tensor.offset) +
             ", which is not aligned to " + std::to_string(out_.alignment_));
    }
    if (tensor.offset > size_) {
      refuse("tensor " + in_quotes(tensor.name) + " begins at data offset " + std::to_string(tensor.offset) +
             "; the file ends at " + std::to_string(size_) + " (is the download complete?)");
    }
    tensor.offset = checked_add(data, tensor.offset);
    const std::uint64_t end = checked_add(tensor.offset, tensor.bytes);
    if (end > size_) {
      refuse("tensor " + in_quotes(tensor.name) + " takes bytes " + std::to_string(tensor.offset) + " to " +
             std::to_string(end) + "; the file ends at " + std::to_string(size_) + " (is the download complete?)");
    }
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      refuse("tensors " + in_quotes(order[i - 1]->name) + " and " + in_quotes(order[i]->name) + " overlap");
    }
  }
  refuse_rest(order.empty() ? data : order.back()->offset + order.back()->bytes);
}

// A table with an entry too few moves where the data seems to begin: every tensor would be read from a wrong place.
void GgufParser::refuse_rest(std::uint64_t end) {
  if (size_ <= checked_add(end, out_.alignment_)) return;
  refuse("the file has " + std::to_string(size_ - end) + " bytes behind its last tensor, which ends at byte " +
         std::to_string(end) + "; its tensor count is wrong, or something was appended");
}

}  // namespace troupe
