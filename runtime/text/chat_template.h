// ChatTemplate: turns a conversation into the text that a model was trained on. Immutable, shared between threads.
//
//     auto chat = ChatTemplate::parse(source);
//     auto rendered = chat->render(messages, true, {.bos = "<s>", .eos = "</s>"});
//     std::vector<TokenId> ids = tokenize_rendered(tokenizer, *rendered);   // runtime/text/prompt.h
//
// The language is the part of Jinja that chat templates use (docs/chat_templates.md), rendered as Hugging Face's
// transformers renders it: trim_blocks, lstrip_blocks, loop controls, a sandbox in which nothing can be changed, tojson
// as Python's json.dumps, undefined names empty when printed and an error when used. What the subset has not is refused
// by construct and line, never rendered differently.
//
// Whatever comes from a user is marked as data through every operation on strings, so that text in a message can never
// become a control token. Every rendering is bounded by a RenderBudget; nothing here throws or aborts.
#pragma once

#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/result.h"
#include "runtime/text/message.h"

namespace troupe {

namespace jinja {
struct Template;
class Heap;
class Dict;
class Meter;
}  // namespace jinja

// One stretch of a rendered prompt. is_data: it came from outside the template (a message, a tool, any string of the
// context), so control tokens are not matched in it.
struct RenderedPart {
  std::string text;
  bool is_data = false;
};

struct Rendered {
  std::vector<RenderedPart> parts;  // neighbours differ in is_data
  std::string text() const;
};

// What one rendering may use. Past it, it fails with bad_input.
struct RenderBudget {
  std::size_t steps = 1'000'000;                      // nodes evaluated, and 64 bytes of string work each
  int depth = 64;                                     // macros within macros
  std::size_t output_bytes = std::size_t{32} << 20;   // of the rendered text
  std::size_t memory_bytes = std::size_t{256} << 20;  // all strings and lists ever made, the context's included
};

// The texts of the model's own start and end tokens; "" if it has none. They count as written by the template.
struct TemplateTokens {
  std::string bos;
  std::string eos;
};

// The local time now, broken down, for strftime_now. Templates never read a clock themselves.
using TemplateClock = std::function<std::tm()>;
// The system's clock in the local time zone.
TemplateClock system_local_time();

class ChatTemplate {
 public:
  // bad_input (not a template) or unsupported (a construct outside the subset), with the line. Without a clock,
  // strftime_now is undefined, which templates that use it usually provide for.
  static Result<ChatTemplate> parse(const std::string& source, TemplateClock clock = {});

  // `variables_json`: a JSON object of the names that the template sees: messages, tools, documents,
  // add_generation_prompt, and whatever else a request passes. All its strings are data (for roles see
  // runtime/text/jinja/variables_json.h); bos_token and eos_token come from `tokens`, unless these are empty.
  // bad_input: malformed JSON, the template's own raise_exception(message) (the error ends in the message), an
  // undefined name used, wrong types, or over the budget; unsupported: met something outside the subset.
  Result<Rendered> render_json(std::string_view variables_json, const RenderBudget& budget,
                               const TemplateTokens& tokens = {}) const;

  // The same for messages of the C++ API. Their content may hold any bytes.
  Result<Rendered> render(std::span<const Message> messages, bool add_generation_prompt, const TemplateTokens& tokens,
                          const RenderBudget& budget = {}) const;

  // Of its constructs, the rarest: 1 those of popular templates, 2 those of most, 3 the long tail.
  int tier() const;

 private:
  ChatTemplate(std::shared_ptr<const jinja::Template> parsed, TemplateClock clock)
      : template_(std::move(parsed)), clock_(std::move(clock)) {}
  template <class MakeContext>
  Result<Rendered> render_with(MakeContext make_context, const RenderBudget& budget,
                               const TemplateTokens& tokens) const;
  Result<Rendered> run(const jinja::Dict& context, jinja::Heap& heap, const RenderBudget& budget) const;

  std::shared_ptr<const jinja::Template> template_;
  TemplateClock clock_;
};

// One line for people: "tier 1, renders", or why it does not parse or does not render one user message.
std::string template_verdict(const std::string& source);

}  // namespace troupe
