// GgufParser: reads one file's header into a Gguf. Throws FormatError; Gguf::open and Gguf::parse turn it into a
// Result.
#pragma once

#include <memory>

#include "runtime/load/gguf.h"

namespace troupe {

class GgufParser {
 public:
  // Adds the file to `out`: the first part gives metadata, version and alignment, further parts only tensors.
  static void add_part(Gguf& out, std::unique_ptr<ByteSource> source);
  // Opens all parts of the model that begins with `path`.
  static void open_parts(Gguf& out, const std::string& path);

  static Gguf empty() { return Gguf(); }

 private:
  static void add_file(Gguf& out, const std::string& path);

  GgufParser(Gguf& out, const ByteSource& source);
  void parse(bool first);
  void spend(std::uint64_t bytes);
  std::string read_text(const char* what, std::uint64_t longest, std::uint64_t copies, std::uint64_t beside);
  void read_preamble();
  void read_metadata(bool first);
  GgufValue read_value(GgufType type);
  GgufArray read_array();
  template <class T>
  std::vector<T> read_elements(GgufType element, std::uint64_t count);
  void read_alignment();
  void check_split_number(const GgufValue& value) const;
  GgufTensor read_tensor();
  void read_shape(GgufTensor& tensor);
  void place(std::vector<GgufTensor>& tensors);
  void refuse_rest(std::uint64_t end);

  Gguf& out_;
  ByteReader reader_;
  std::uint64_t size_;
  std::uint64_t budget_;  // bytes that the parsed header may still take in memory
  std::uint64_t tensor_count_ = 0;
  std::uint64_t entry_count_ = 0;
};

}  // namespace troupe
