// The list of architectures: a new one is its own file and one line here.
#include <string>
#include <string_view>

#include "runtime/models/llama.h"
#include "runtime/models/model.h"
#include "runtime/text/printable.h"

namespace troupe {
namespace {

struct Architecture {
  std::string_view name;  // general.architecture
  Result<std::unique_ptr<Model>> (*load)(const Gguf&, Backend&, const LoadOptions&);
};

constexpr Architecture kArchitectures[] = {
    {"llama", load_llama},
};

}  // namespace

Result<std::unique_ptr<Model>> load_model(const Gguf& file, Backend& backend, const LoadOptions& options) {
  auto wanted = file.get_string("general.architecture");
  if (!wanted) return wanted.error();
  std::string known;
  for (const Architecture& one : kArchitectures) {
    if (one.name == *wanted) return one.load(file, backend, options);
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return Error{ErrorCode::unsupported,
               "architecture '" + printable(*wanted, 60) + "' is not supported; supported: " + known};
}

}  // namespace troupe
