#include "runtime/load/gguf.h"

#include <new>

#include "runtime/load/gguf_parser.h"

namespace troupe {
namespace {

template <class Parse>
Result<Gguf> guarded(Parse&& parse) {
  try {
    Gguf file = GgufParser::empty();
    parse(file);
    return file;
  } catch (const FormatError& error) {
    return Error{error.code, error.what()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "not enough memory for the header of the model file"};
  }
}

Error wrong_type(std::string_view key, const GgufValue& value, const char* wanted) {
  return {ErrorCode::bad_input,
          "metadata " + std::string(key) + " has type " + name(value.type) + " where " + wanted + " is needed"};
}

Error missing(std::string_view key) {
  return {ErrorCode::bad_input, "metadata " + std::string(key) + " is missing"};
}

template <class T>
Result<T> get(const Gguf& file, std::string_view key, const char* wanted) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return missing(key);
  if (const T* held = std::get_if<T>(&value->value)) return *held;
  return wrong_type(key, *value, wanted);
}

}  // namespace

const char* name(GgufType type) {
  static constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::uint32_t>(type)];
}

std::size_t GgufArray::size() const {
  return std::visit([](const auto& held) { return held.size(); }, values);
}

Result<Gguf> Gguf::open(const std::string& path) {
  return guarded([&](Gguf& file) { GgufParser::open_parts(file, path); });
}

Result<Gguf> Gguf::parse(std::span<const std::byte> bytes) {
  return guarded([&](Gguf& file) { GgufParser::add_part(file, view_memory(bytes)); });
}

std::uint64_t Gguf::file_bytes() const {
  std::uint64_t total = 0;
  for (const auto& part : parts_) total += part->size();
  return total;
}

std::uint64_t Gguf::tensor_bytes() const {
  std::uint64_t total = 0;
  for (const GgufTensor& tensor : tensors_) total += tensor.bytes;
  return total;
}

const GgufTensor* Gguf::find_tensor(std::string_view wanted) const {
  const auto found = by_name_.find(std::string(wanted));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = by_key_.find(std::string(key));
  return found == by_key_.end() ? nullptr : &metadata_[found->second].value;
}

Result<std::uint64_t> Gguf::get_uint(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* held = std::get_if<std::uint64_t>(&value->value)) return *held;
  if (const auto* held = std::get_if<std::int64_t>(&value->value); held != nullptr && *held >= 0) {
    return static_cast<std::uint64_t>(*held);
  }
  return wrong_type(key, *value, "a non-negative integer");
}

Result<double> Gguf::get_float(std::string_view key) const {
  return get<double>(*this, key, "a float");
}
Result<bool> Gguf::get_bool(std::string_view key) const {
  return get<bool>(*this, key, "a bool");
}
Result<std::string> Gguf::get_string(std::string_view key) const {
  return get<std::string>(*this, key, "a string");
}

Result<const std::vector<std::string>*> Gguf::get_strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* array = std::get_if<GgufArray>(&value->value)) {
    if (const auto* strings = std::get_if<std::vector<std::string>>(&array->values)) return strings;
  }
  return wrong_type(key, *value, "an array of strings");
}

Result<void> Gguf::read(const GgufTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  try {
    if (checked_add(offset, out.size()) > tensor.bytes) {
      return Error{ErrorCode::bad_input, "read past the end of tensor " + tensor.name};
    }
    parts_[tensor.part]->read(tensor.offset + offset, out);
    return {};
  } catch (const FormatError& error) {
    return Error{error.code, error.what()};
  }
}

}  // namespace troupe
