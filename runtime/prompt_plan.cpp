#include "runtime/prompt_plan.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/text/healing.h"
#include "runtime/text/prompt.h"

namespace troupe {
namespace {

std::int64_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  const auto end = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin()).first;
  return end - a.begin();
}

// What stands behind the first `bytes` bytes of a rendered prompt.
Rendered behind(const Rendered& rendered, std::size_t bytes) {
  Rendered rest;
  for (const RenderedPart& part : rendered.parts) {
    const std::size_t skipped = std::min(bytes, part.text.size());
    bytes -= skipped;
    if (skipped < part.text.size()) rest.parts.push_back({part.text.substr(skipped), part.is_data});
  }
  return rest;
}

Result<PromptPlan> plan_chat(const TextSide& side, const PromptJob& job) {
  if (!side.chat_template) return side.template_error;
  const Vocabulary& vocabulary = *side.vocabulary;
  TemplateTokens specials;
  if (auto bos = vocabulary.bos()) specials.bos = vocabulary.bytes(*bos);
  if (auto eos = vocabulary.eos()) specials.eos = vocabulary.bytes(*eos);
  auto rendered = side.chat_template->render(job.messages, true, specials);
  if (!rendered) return rendered.error();

  PromptPlan plan;
  plan.text = rendered->text();
  if (!job.history.empty() && plan.text.starts_with(job.history_text)) {
    plan.keep = static_cast<std::int64_t>(job.history.size());
    plan.fresh = tokenize_rendered(*side.tokenizer, behind(*rendered, job.history_text.size()));
    return plan;
  }
  std::vector<TokenId> canonical = tokenize_rendered(*side.tokenizer, *rendered);
  plan.keep = common_prefix(job.history, canonical);
  plan.fresh.assign(canonical.begin() + plan.keep, canonical.end());
  return plan;
}

Result<PromptPlan> plan_text(const TextSide& side, const PromptJob& job) {
  PromptPlan plan;
  plan.keep = static_cast<std::int64_t>(job.history.size());
  const Vocabulary& vocabulary = *side.vocabulary;
  if (job.history.empty() && vocabulary.adds_bos() && vocabulary.bos()) plan.fresh.push_back(*vocabulary.bos());
  const std::vector<TokenId> ids = side.tokenizer->encode(job.text, Tokenizer::Specials::as_text);
  plan.fresh.insert(plan.fresh.end(), ids.begin(), ids.end());
  plan.text = job.history_text + job.text;
  return plan;
}

Result<PromptPlan> plan_tokens(const TextSide& side, const PromptJob& job) {
  PromptPlan plan;
  plan.keep = static_cast<std::int64_t>(job.history.size());
  plan.fresh = job.tokens;
  plan.text = job.history_text;
  for (std::size_t i = 0; i < job.tokens.size(); ++i) {
    const TokenId token = job.tokens[i];
    if (token < 0 || token >= side.vocabulary->size()) {
      return Error{ErrorCode::bad_input, "token " + std::to_string(token) + " at place " + std::to_string(i) +
                                             " is outside the vocabulary of " +
                                             std::to_string(side.vocabulary->size()) + " tokens"};
    }
    plan.text += side.vocabulary->bytes(token);
  }
  return plan;
}

Result<PromptPlan> plan_kind(const TextSide& side, const PromptJob& job) {
  if (job.kind == PromptJob::Kind::tokens) return plan_tokens(side, job);
  if (!side.tokenizer) return side.tokenizer_error;
  return job.kind == PromptJob::Kind::chat ? plan_chat(side, job) : plan_text(side, job);
}

// Of what is new in this turn only, and never the first token of all: something has to be computed.
void take_back(const Vocabulary& vocabulary, PromptPlan& plan) {
  const std::span<const TokenId> fresh(plan.fresh);
  const std::size_t first = plan.keep == 0 && !fresh.empty() ? 1 : 0;
  const std::size_t count = tokens_to_heal(vocabulary, fresh.subspan(first));
  std::string healed;
  for (const TokenId token : fresh.last(count)) healed += vocabulary.bytes(token);
  if (!plan.text.ends_with(healed)) return;  // a byte of the text has no token
  plan.fresh.resize(plan.fresh.size() - count);
  plan.text.resize(plan.text.size() - healed.size());
  plan.healed = std::move(healed);
}

}  // namespace

std::size_t PromptJob::bytes() const {
  std::size_t total = text.size();
  for (const Message& message : messages) total += message.content.size() + message.role.size();
  return total;
}

Result<PromptPlan> plan_prompt(const TextSide& side, const PromptJob& job) {
  auto plan = plan_kind(side, job);
  if (plan && job.heal) take_back(*side.vocabulary, *plan);
  return plan;
}

}  // namespace troupe
