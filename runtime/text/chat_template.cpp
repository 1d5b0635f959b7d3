#include "runtime/text/chat_template.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/template.h"
#include "runtime/text/jinja/variables_json.h"
#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace troupe {
namespace {

using jinja::Failure;
using jinja::Value;

std::string place(int line, const std::string& construct) {
  return "line " + std::to_string(line) + (construct.empty() ? "" : ", " + printable(construct, 100));
}

Error to_error(const Failure& failure, int line, const std::string& construct) {
  // It may quote the template, which may be of any length.
  const std::string message = printable(failure.what(), 400);
  const std::string where = "the chat template, " + place(failure.line() > 0 ? failure.line() : line, construct);
  switch (failure.kind()) {
    case Failure::Kind::syntax:
      return {ErrorCode::bad_input, where + ": " + message};
    case Failure::Kind::unsupported:
      return {ErrorCode::unsupported, where + ": not supported: " + message};
    case Failure::Kind::raised:
      return {ErrorCode::bad_input, where + ", refuses this conversation: " + message};
    case Failure::Kind::budget:
      return {ErrorCode::bad_input, where + ", is stopped: " + message};
    case Failure::Kind::undefined:
    case Failure::Kind::runtime:
    case Failure::Kind::security:
      break;
  }
  return {ErrorCode::bad_input, where + " failed: " + message};
}

Error out_of_memory() {
  return {ErrorCode::out_of_memory, "no memory to render the chat template"};
}

Rendered to_rendered(const jinja::Text& text) {
  Rendered rendered;
  text.each_run(0, text.size(), [&](std::string_view bytes, bool is_data) {
    rendered.parts.push_back({std::string(bytes), is_data});
  });
  return rendered;
}

// Defines a name as the template's own text, whatever the context says.
void define_token(jinja::Dict& context, std::string_view name, const std::string& token, jinja::Heap& heap) {
  if (token.empty() && context.find(name) != nullptr) return;
  context.set(heap.text(name), heap.text(token), heap.meter());
}

Value to_value(const Message& message, jinja::Heap& heap) {
  jinja::Dict dict;
  const bool role_is_data = !jinja::is_conventional_role(message.role);
  dict.set(heap.text("role"), heap.text(message.role, role_is_data), heap.meter());
  dict.set(heap.text("content"), heap.text(message.content, true), heap.meter());
  return heap.dict(std::move(dict));
}

}  // namespace

std::string Rendered::text() const {
  std::string whole;
  for (const RenderedPart& part : parts) whole += part.text;
  return whole;
}

TemplateClock system_local_time() {
  return [] {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return local;
  };
}

Result<ChatTemplate> ChatTemplate::parse(const std::string& source, TemplateClock clock) {
  if (const std::size_t valid = utf8_valid_prefix(source); valid != source.size()) {
    return Error{ErrorCode::bad_input, "the chat template is not UTF-8 at byte " + std::to_string(valid)};
  }
  try {
    auto parsed = std::make_shared<jinja::Template>();
    jinja::Parser::parse(source, *parsed);
    return ChatTemplate(std::move(parsed), std::move(clock));
  } catch (const Failure& failure) {
    return to_error(failure, 1, "");
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

int ChatTemplate::tier() const {
  return template_->tier;
}

Result<Rendered> ChatTemplate::run(const jinja::Dict& context, jinja::Heap& heap, const RenderBudget& budget) const {
  jinja::Interpreter interpreter(*template_, heap, context, clock_);
  try {
    jinja::TextBuilder out(heap.meter(), budget.output_bytes);
    interpreter.render(out);
    return to_rendered(out.finish());
  } catch (const Failure& failure) {
    return to_error(failure, interpreter.line(), interpreter.construct());
  }
}

// make_context(heap) gives the names from outside; bos_token and eos_token are added here.
template <class MakeContext>
Result<Rendered> ChatTemplate::render_with(MakeContext make_context, const RenderBudget& budget,
                                           const TemplateTokens& tokens) const {
  try {
    jinja::Meter meter(budget.steps, budget.memory_bytes, budget.depth);
    jinja::Heap heap(meter);
    jinja::Dict context = make_context(heap);
    define_token(context, "bos_token", tokens.bos, heap);
    define_token(context, "eos_token", tokens.eos, heap);
    return run(context, heap, budget);
  } catch (const Failure& failure) {
    return Error{ErrorCode::bad_input, std::string("the context of the chat template: ") + failure.what()};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {
    return out_of_memory();
  }
}

Result<Rendered> ChatTemplate::render_json(std::string_view variables_json, const RenderBudget& budget,
                                           const TemplateTokens& tokens) const {
  return render_with([&](jinja::Heap& heap) { return jinja::read_context(variables_json, heap); }, budget, tokens);
}

Result<Rendered> ChatTemplate::render(std::span<const Message> messages, bool add_generation_prompt,
                                      const TemplateTokens& tokens, const RenderBudget& budget) const {
  const auto make_context = [&](jinja::Heap& heap) {
    std::vector<Value> list;
    for (const Message& message : messages) list.push_back(to_value(message, heap));
    jinja::Dict context;
    context.set(heap.text("messages"), heap.list(std::move(list)), heap.meter());
    context.set(heap.text("add_generation_prompt"), Value(add_generation_prompt), heap.meter());
    return context;
  };
  return render_with(make_context, budget, tokens);
}

std::string template_verdict(const std::string& source) {
  auto parsed = ChatTemplate::parse(source, system_local_time());
  if (!parsed) return parsed.error().message;
  const Message hello{"user", "Hello"};
  const auto rendered = parsed->render(std::span(&hello, 1), true, {"<s>", "</s>"});
  const std::string tier = "tier " + std::to_string(parsed->tier());
  return rendered ? tier + ", renders" : tier + ", does not render a lone user message: " + rendered.error().message;
}

}  // namespace troupe
