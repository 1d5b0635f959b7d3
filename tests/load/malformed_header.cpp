#include <cstdint>
#include <limits>

#include "tests/load/malformed.h"

namespace troupe::test {
namespace {

using namespace gguf_type;

constexpr std::uint64_t kAllOnes = std::numeric_limits<std::uint64_t>::max();

// A copy of the image with one more entry, at a random place among the others, so that the fault is not at a fixed
// byte.
ImageEntry& insert_entry(GgufImage& image, Random& random, ImageEntry entry) {
  const auto at = random.below(static_cast<std::int64_t>(image.entries.size()) + 1);
  return *image.entries.insert(image.entries.begin() + at, std::move(entry));
}

Malformed with_value(GgufImage image, Random& random, std::uint32_t type, std::string payload) {
  insert_entry(image, random, {"general.strange", type, std::move(payload)});
  return {image.bytes(), "general.strange"};
}

// The key's length field says `length`.
Malformed with_key_length(const GgufImage& image, Random& random, std::uint64_t length) {
  GgufImage before = image;
  const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(image.entries.size())));
  before.entries.resize(at);
  before.tensors.clear();
  const std::size_t place = before.header().size();
  std::string bytes = image.bytes();
  bytes.replace(place, 8, raw(length));
  return {std::move(bytes), "byte " + std::to_string(place)};
}

Malformed with_tensor(GgufImage image, Random& random, void (*change)(ImageTensor&)) {
  ImageTensor& tensor = any_matrix(image, random);
  change(tensor);
  return {image.bytes(), tensor.name};
}

Malformed cut(const GgufImage& image, Random& random, std::size_t from, std::size_t to) {
  const auto size = from + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(to - from)));
  return {image.bytes().substr(0, size), "byte"};
}

std::size_t metadata_end(GgufImage image) {
  image.tensors.clear();
  return image.header().size();
}

std::size_t table_end(const GgufImage& image) {
  return image.header().size() - image.alignment;
}

}  // namespace

std::vector<MalformedClass> malformed_headers() {
  return {
      {"an empty file",
       [](GgufImage, Random&) {
         return Malformed{"", "byte 0"};
       }},
      {"another magic",
       [](GgufImage image, Random& random) {
         image.magic[static_cast<std::size_t>(random.below(4))] ^= 1;
         return Malformed{image.bytes(), "byte 0"};
       }},
      {"magic backwards",
       [](GgufImage image, Random&) {
         image.magic = "FUGG";
         return Malformed{image.bytes(), "byte 0"};
       }},
      {"version 0",
       [](GgufImage image, Random&) {
         image.version = 0;
         return Malformed{image.bytes(), "byte 4"};
       }},
      {"version 1",
       [](GgufImage image, Random&) {
         image.version = 1;
         return Malformed{image.bytes(), "version 1 at byte 4"};
       }},
      {"a version of the future",
       [](GgufImage image, Random& random) {
         image.version = 4 + static_cast<std::uint32_t>(random.below(1000));
         return Malformed{image.bytes(), "byte 4"};
       }},
      {"version -1",
       [](GgufImage image, Random&) {
         image.version = 0xffffffff;
         return Malformed{image.bytes(), "byte 4"};
       }},
      {"big-endian",
       [](GgufImage image, Random& random) {
         image.version = random.below(2) == 0 ? 0x02000000 : 0x03000000;
         return Malformed{image.bytes(), "big-endian"};
       }},
      {"tensor count -1",
       [](GgufImage image, Random&) {
         image.claimed_tensors = kAllOnes;
         return Malformed{image.bytes(), "byte 8"};
       }},
      {"a huge tensor count",
       [](GgufImage image, Random& random) {
         image.claimed_tensors = std::uint64_t{1} << (24 + random.below(38));
         return Malformed{image.bytes(), "byte 8"};
       }},
      {"one tensor more than there",
       [](GgufImage image, Random&) {
         image.claimed_tensors = image.tensors.size() + 1;
         return Malformed{image.bytes(), "byte "};
       }},
      {"one tensor fewer than there",
       [](GgufImage image, Random&) {
         image.claimed_tensors = image.tensors.size() - 1;
         return Malformed{image.bytes(), "bytes behind its last tensor"};
       }},
      {"something appended",
       [](GgufImage image, Random& random) {
         std::string bytes = image.bytes();
         bytes.append(static_cast<std::size_t>(65 + random.below(5000)), 'x');
         return Malformed{bytes, "bytes behind its last tensor"};
       }},
      {"metadata count -1",
       [](GgufImage image, Random&) {
         image.claimed_entries = kAllOnes;
         return Malformed{image.bytes(), "byte 16"};
       }},
      {"a huge metadata count",
       [](GgufImage image, Random& random) {
         image.claimed_entries = std::uint64_t{1} << (24 + random.below(38));
         return Malformed{image.bytes(), "byte 16"};
       }},
      {"one entry more than there",
       [](GgufImage image, Random&) {
         image.claimed_entries = image.entries.size() + 1;
         return Malformed{image.bytes(), "byte "};
       }},
      {"one entry fewer than there",
       [](GgufImage image, Random&) {
         image.claimed_entries = image.entries.size() - 1;
         return Malformed{image.bytes(), "byte "};
       }},
      {"an empty key",
       [](GgufImage image, Random& random) {
         insert_entry(image, random, {"", kU8, "x"});
         return Malformed{image.bytes(), "empty metadata key at byte"};
       }},
      {"a key of length -1", [](GgufImage image, Random& random) { return with_key_length(image, random, kAllOnes); }},
      {"a key past the end",
       [](GgufImage image, Random& random) { return with_key_length(image, random, image.bytes().size()); }},
      {"a key of 70,000 bytes",
       [](GgufImage image, Random& random) {
         insert_entry(image, random, {std::string(70000, 'k'), kU8, "x"});
         return Malformed{image.bytes(), "metadata key at byte"};
       }},
      {"a key twice",
       [](GgufImage image, Random& random) {
         const auto from = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(image.entries.size())));
         const ImageEntry entry = image.entries[from];
         image.entries.push_back(entry);
         return Malformed{image.bytes(), entry.key};
       }},
      {"a key twice with another value",
       [](GgufImage image, Random& random) {
         const auto from = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(image.entries.size())));
         const std::string key = image.entries[from].key;
         insert_entry(image, random, {key, kU8, "x"});
         return Malformed{image.bytes(), key};
       }},
      {"metadata type 13", [](GgufImage image, Random& random) { return with_value(image, random, 13, ""); }},
      {"metadata type -1", [](GgufImage image, Random& random) { return with_value(image, random, 0xffffffff, ""); }},
      {"a boolean of 2", [](GgufImage image, Random& random) { return with_value(image, random, kBool, "\2"); }},
      {"array elements of type 13",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kArray, raw(std::uint32_t{13}) + raw(std::uint64_t{0}));
       }},
      {"an array of arrays",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kArray,
                           raw(kArray) + raw(std::uint64_t{1}) + raw(kU8) + raw(std::uint64_t{0}));
       }},
      {"an array of length -1",
       [](GgufImage image, Random& random) { return with_value(image, random, kArray, raw(kU8) + raw(kAllOnes)); }},
      {"a huge array of strings",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kArray, raw(kString) + raw(std::uint64_t{1} << (20 + random.below(41))));
       }},
      {"a huge array of numbers",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kArray, raw(kF64) + raw(std::uint64_t{1} << (20 + random.below(41))));
       }},
      {"a boolean of 255 in an array",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kArray, raw(kBool) + raw(std::uint64_t{2}) + "\1\xff");
       }},
      {"a string of length -1",
       [](GgufImage image, Random& random) { return with_value(image, random, kString, raw(kAllOnes)); }},
      {"a string past the end",
       [](GgufImage image, Random& random) {
         return with_value(image, random, kString, raw(std::uint64_t{image.bytes().size() + 4096}));
       }},
      {"a string of half the address space",
       [](GgufImage image, Random& random) { return with_value(image, random, kString, raw(std::uint64_t{1} << 63)); }},
      {"alignment 0",
       [](GgufImage image, Random&) {
         image.set("general.alignment", 0u);
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"alignment 3",
       [](GgufImage image, Random&) {
         image.set("general.alignment", 3u);
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"alignment 24",
       [](GgufImage image, Random&) {
         image.set("general.alignment", 24u);
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"alignment 2^30",
       [](GgufImage image, Random&) {
         image.set("general.alignment", 1u << 30);
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"alignment as text",
       [](GgufImage image, Random&) {
         image.set("general.alignment", std::string("32"));
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"alignment -32",
       [](GgufImage image, Random&) {
         image.set_raw("general.alignment", kI32, raw(std::int32_t{-32}));
         return Malformed{image.bytes(), "general.alignment"};
       }},
      {"no dimensions",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.dims.clear(); });
       }},
      {"five dimensions",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.dims.resize(5, 1); });
       }},
      {"a dimension of 0",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.dims[1] = 0; });
       }},
      {"a dimension of -1",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.dims[0] = kAllOnes; });
       }},
      {"dimensions whose product overflows",
       [](GgufImage image, Random& random) {
         any_matrix(image, random).dims = {32, std::uint64_t{1} << 32, std::uint64_t{1} << 32, 4};
         return Malformed{image.bytes(), "more than 2^48 elements"};
       }},
      {"dimensions whose product overflows to nothing",
       [](GgufImage image, Random& random) {
         any_matrix(image, random).dims = {std::uint64_t{1} << 38, std::uint64_t{1} << 38};
         return Malformed{image.bytes(), "more than 2^48 elements"};
       }},
      {"a dimension that overflows to the right one",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         tensor.dims[1] += std::uint64_t{1} << 63;  // an even number of columns times this is a multiple of 2^64
         return Malformed{image.bytes(), tensor.name + "' at byte"};
       }},
      {"rows that are no whole blocks",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) {
           tensor.type = 2;
           tensor.dims[0] -= 1;
         });
       }},
      {"a type that does not exist",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.type = 199; });
       }},
      {"type -1",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.type = 0xffffffff; });
       }},
      {"type IQ4_NL",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         tensor.type = 20;
         return Malformed{image.bytes(), "type 20 (IQ4_NL)"};
       }},
      {"type Q2_K",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         tensor.type = 10;
         return Malformed{image.bytes(), "type 10 (Q2_K)"};
       }},
      {"two tensors in one place",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         tensor.offset = tensor.offset == 0 ? image.tensors[1].offset : 0;
         return Malformed{image.bytes(), "overlap"};
       }},
      {"the tail of one tensor in the next",
       [](GgufImage image, Random& random) {
         const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(image.tensors.size()) - 1));
         image.tensors[at + 1].offset -= image.alignment;
         return Malformed{image.bytes(), image.tensors[at + 1].name};
       }},
      {"an offset past the end",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.offset = std::uint64_t{1} << 40; });
       }},
      {"the last tensor beyond the end by a little",
       [](GgufImage image, Random&) {
         image.tensors.back().offset += image.alignment;
         return Malformed{image.bytes(), image.tensors.back().name};
       }},
      {"an offset that is not aligned",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.offset += 1; });
       }},
      {"an offset that overflows with the data's start",
       [](GgufImage image, Random& random) {
         return with_tensor(image, random, [](ImageTensor& tensor) { tensor.offset = kAllOnes - 31; });
       }},
      {"offsets for another alignment",
       [](GgufImage image, Random&) {
         image.set("general.alignment", 4096u);
         return Malformed{image.bytes(), "not aligned to 4096"};
       }},
      {"an empty tensor name",
       [](GgufImage image, Random& random) {
         any_matrix(image, random).name.clear();
         return Malformed{image.bytes(), "without a name at byte"};
       }},
      {"a tensor name of 5,000 bytes",
       [](GgufImage image, Random& random) {
         any_matrix(image, random).name = std::string(5000, 'n');
         return Malformed{image.bytes(), "tensor name at byte"};
       }},
      {"a tensor name twice",
       [](GgufImage image, Random& random) {
         const std::string name = any_tensor(image, random).name;
         image.tensors[name == image.tensors[0].name ? 1 : 0].name = name;
         return Malformed{image.bytes(), name};
       }},
      {"cut in the preamble", [](GgufImage image, Random& random) { return cut(image, random, 1, 24); }},
      {"cut in the metadata",
       [](GgufImage image, Random& random) { return cut(image, random, 24, metadata_end(image)); }},
      {"cut in the tensor table",
       [](GgufImage image, Random& random) { return cut(image, random, metadata_end(image), table_end(image)); }},
      {"cut in the data",
       [](GgufImage image, Random& random) { return cut(image, random, image.header().size(), image.bytes().size()); }},
  };
}

}  // namespace troupe::test
