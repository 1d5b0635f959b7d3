#include "runtime/load/inspect.h"

#include <cstdio>
#include <map>

#include "runtime/text/printable.h"

namespace troupe {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int size = std::snprintf(nullptr, 0, pattern, args...);
  std::string out(static_cast<std::size_t>(size), '\0');
  std::snprintf(out.data(), out.size() + 1, pattern, args...);
  return out;
}

std::string shown(std::string_view text, std::size_t longest) {
  const std::string size = text.size() > longest ? " (" + std::to_string(text.size()) + " bytes)" : "";
  return printable(text, longest) + size;
}

std::string shown(const GgufArray& array, std::size_t longest) {
  std::string out = "[";
  std::visit(
      [&](const auto& values) {
        for (std::size_t i = 0; i < values.size() && out.size() < longest; ++i) {
          if (i > 0) out += ", ";
          if constexpr (std::is_same_v<std::decay_t<decltype(values[i])>, std::string>) {
            out += shown(std::string_view(values[i]), longest);
          } else {
            out += format("%g", static_cast<double>(values[i]));
          }
        }
      },
      array.values);
  return out + "] " + std::to_string(array.size()) + " x " + name(array.element);
}

std::string shown(const GgufValue& value, std::size_t longest) {
  struct Show {
    std::size_t longest;
    std::string operator()(std::uint64_t x) const { return std::to_string(x); }
    std::string operator()(std::int64_t x) const { return std::to_string(x); }
    std::string operator()(double x) const { return format("%.9g", x); }
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(const std::string& x) const { return shown(std::string_view(x), longest); }
    std::string operator()(const GgufArray& x) const { return shown(x, longest); }
  };
  return std::visit(Show{longest}, value.value);
}

std::string tensor_line(const GgufTensor& tensor) {
  std::string dims;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) dims += (i ? " x " : "") + std::to_string(tensor.dims[i]);
  return format("  %-40s %-5s %16s %14llu bytes at %llu\n", shown(std::string_view(tensor.name), 60).c_str(),
                std::string(traits(tensor.type).name).c_str(), dims.c_str(),
                static_cast<unsigned long long>(tensor.bytes), static_cast<unsigned long long>(tensor.offset));
}

std::string sums(const Gguf& file) {
  struct Sum {
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
    double weights = 0;
  };
  std::map<std::string, Sum> by_type;
  double weights = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    Sum& sum = by_type[std::string(traits(tensor.type).name)];
    ++sum.tensors;
    sum.bytes += tensor.bytes;
    sum.weights += static_cast<double>(tensor.rows) * static_cast<double>(tensor.cols);
    weights += static_cast<double>(tensor.rows) * static_cast<double>(tensor.cols);
  }
  std::string out = "sizes\n";
  for (const auto& [type, sum] : by_type) {
    out += format("  %-5s %4zu tensors %14llu bytes %8.2f M weights\n", type.c_str(), sum.tensors,
                  static_cast<unsigned long long>(sum.bytes), sum.weights / 1e6);
  }
  return out + format("  all   %4zu tensors %14llu bytes, %.2f M weights, %.2f bits a weight\n", file.tensors().size(),
                      static_cast<unsigned long long>(file.tensor_bytes()), weights / 1e6,
                      weights > 0 ? 8.0 * static_cast<double>(file.tensor_bytes()) / weights : 0.0);
}

std::string context_line(const Gguf& file) {
  auto architecture = file.get_string("general.architecture");
  if (!architecture) return "";
  auto context = file.get_uint(*architecture + ".context_length");
  return context ? "context " + std::to_string(*context) + " tokens\n" : "";
}

}  // namespace

std::string describe(const Gguf& file, const InspectOptions& options) {
  std::string out =
      format("GGUF version %u, %zu metadata entries, %zu tensors, %llu bytes, alignment %llu\n", file.version(),
             file.metadata().size(), file.tensors().size(), static_cast<unsigned long long>(file.file_bytes()),
             static_cast<unsigned long long>(file.alignment()));
  out += "metadata\n";
  for (const GgufEntry& entry : file.metadata()) {
    out += format("  %-44s %-6s %s\n", shown(std::string_view(entry.key), 60).c_str(), name(entry.value.type),
                  shown(entry.value, options.longest_value).c_str());
  }
  if (options.tensors) {
    out += "tensors\n";
    for (const GgufTensor& tensor : file.tensors()) out += tensor_line(tensor);
  }
  return out + sums(file) + context_line(file);
}

}  // namespace troupe
