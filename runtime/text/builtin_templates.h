// Chat templates by name, for files that bring none or a bad one (--chat-template NAME). Written for this project after
// the formats that the models' makers publish.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace troupe {

struct BuiltinTemplate {
  std::string_view name;    // chatml, gemma, llama2, llama3, mistral, phi3, qwen, zephyr
  std::string_view source;  // for ChatTemplate::parse
};

std::span<const BuiltinTemplate> builtin_templates();
std::optional<std::string_view> find_builtin_template(std::string_view name);

}  // namespace troupe
