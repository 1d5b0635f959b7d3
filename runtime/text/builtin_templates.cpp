#include "runtime/text/builtin_templates.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kChatml = R"({%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

// ChatML with Qwen's system text where the conversation has none.
constexpr std::string_view kQwen = R"({%- if messages and messages[0].role != 'system' %}
{{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

// The system text stands inside the first user turn.
constexpr std::string_view kLlama2 = R"({%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' %}
{%- elif message.role == 'user' %}
{{- bos_token + '[INST] ' + ns.system + (message.content | trim) + ' [/INST]' }}
{%- set ns.system = '' %}
{%- elif message.role == 'assistant' %}
{{- ' ' + (message.content | trim) + ' ' + eos_token }}
{%- else %}
{{- raise_exception('this format has the roles system, user and assistant, not ' + message.role) }}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kLlama3 = R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + (message.content | trim) + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})";

constexpr std::string_view kMistral = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = message.content + '\n\n' %}
{%- elif message.role == 'user' %}
{{- '[INST] ' + ns.system + message.content + ' [/INST]' }}
{%- set ns.system = '' %}
{%- elif message.role == 'assistant' %}
{{- ' ' + (message.content | trim) + eos_token }}
{%- else %}
{{- raise_exception('this format has the roles system, user and assistant, not ' + message.role) }}
{%- endif %}
{%- endfor %})";

// The system text stands before the first user text.
constexpr std::string_view kGemma = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = (message.content | trim) + '\n\n' %}
{%- elif message.role == 'assistant' %}
{{- '<start_of_turn>model\n' + (message.content | trim) + '<end_of_turn>\n' }}
{%- else %}
{{- '<start_of_turn>user\n' + ns.system + (message.content | trim) + '<end_of_turn>\n' }}
{%- set ns.system = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})";

constexpr std::string_view kPhi3 =
    R"({%- set marks = {'system': '<|system|>', 'user': '<|user|>', 'assistant': '<|assistant|>'} %}
{%- for message in messages %}
{%- if message.role not in marks %}
{{- raise_exception('this format has the roles system, user and assistant, not ' + message.role) }}
{%- endif %}
{{- marks[message.role] + '\n' + message.content + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

constexpr std::string_view kZephyr =
    R"({%- set marks = {'system': '<|system|>', 'user': '<|user|>', 'assistant': '<|assistant|>'} %}
{%- for message in messages %}
{%- if message.role not in marks %}
{{- raise_exception('this format has the roles system, user and assistant, not ' + message.role) }}
{%- endif %}
{{- marks[message.role] + '\n' + message.content + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

constexpr BuiltinTemplate kTemplates[] = {
    {"chatml", kChatml},   {"gemma", kGemma}, {"llama2", kLlama2}, {"llama3", kLlama3},
    {"mistral", kMistral}, {"phi3", kPhi3},   {"qwen", kQwen},     {"zephyr", kZephyr},
};

}  // namespace

std::span<const BuiltinTemplate> builtin_templates() {
  return kTemplates;
}

std::optional<std::string_view> find_builtin_template(std::string_view name) {
  const auto* found = std::ranges::find(kTemplates, name, &BuiltinTemplate::name);
  if (found == std::end(kTemplates)) return std::nullopt;
  return found->source;
}

}  // namespace troupe
