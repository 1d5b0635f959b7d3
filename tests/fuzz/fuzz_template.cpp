// Fuzz target of chat templates: the input is a template, and behind a zero byte a context in JSON; then what must hold
// for all of them. Traps (and so ends the run with the input kept) where a promise is broken.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/text/chat_template.h"

namespace {

using namespace troupe;

void must(bool holds) {
  if (!holds) __builtin_trap();
}

// A character that templates do not write: it stands in the context only, so wherever it comes out must be data.
constexpr std::string_view kForeign = "\xee\x80\x80";

constexpr std::string_view kContext =
    "{\"messages\": [{\"role\": \"user\", \"content\": \" \xee\x80\x80 Ab\\n\"}, {\"role\": \"\xee\x80\x80\", "
    "\"content\": "
    "[{\"type\": \"text\", \"text\": \"\xee\x80\x80\"}]}], \"tools\": [{\"function\": {\"name\": \"\xee\x80\x80\", "
    "\"parameters\": {\"\xee\x80\x80\": [1, 2.5, null, true]}}}], \"add_generation_prompt\": true, \"s\": "
    "\"x\xee\x80\x80y\", \"n\": 7, \"l\": [3, 1, \"\xee\x80\x80\"], \"d\": {\"a\": 1, \"b\": \"\xee\x80\x80\"}}";

bool could_write_it(std::string_view source) {
  return source.find(kForeign) != source.npos || source.find('\\') != source.npos;
}

void check(const Rendered& rendered, const RenderBudget& budget, bool source_could_write_it) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < rendered.parts.size(); ++i) {
    const RenderedPart& part = rendered.parts[i];
    must(!part.text.empty());
    must(i == 0 || rendered.parts[i - 1].is_data != part.is_data);
    must(part.is_data || source_could_write_it || part.text.find(kForeign) == std::string::npos);
    size += part.text.size();
  }
  must(size <= budget.output_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view source = input.substr(0, input.find('\0'));
  const auto parsed = ChatTemplate::parse(std::string(source), [] { return std::tm{}; });
  if (!parsed) {
    must(!parsed.error().message.empty());
    return 0;
  }
  RenderBudget budget;
  budget.steps = 20'000;
  budget.memory_bytes = std::size_t{4} << 20;
  budget.output_bytes = std::size_t{1} << 20;
  const TemplateTokens tokens{"<s>", "</s>"};
  if (const auto rendered = parsed->render_json(kContext, budget, tokens))
    check(*rendered, budget, could_write_it(source));
  if (source.size() < input.size()) {
    const std::string_view context = input.substr(source.size() + 1);
    if (const auto rendered = parsed->render_json(context, budget, tokens)) check(*rendered, budget, true);
  }
  return 0;
}
