#include "actors/turn_work.h"

#include <algorithm>
#include <utility>

#include "runtime/sampling/memory.h"

namespace troupe {

namespace {

std::shared_ptr<const SamplingParams> sampling_of_branch(SamplingParams params, std::uint64_t branch) {
  params.seed += branch;
  return std::make_shared<const SamplingParams>(std::move(params));
}

}  // namespace

PromptJob job_of(const Turn& turn, const Conversation& conversation) {
  if (turn.kind == Turn::Kind::message) return conversation.message_job({turn.role, turn.text});
  const bool is_text = turn.kind == Turn::Kind::text;
  PromptJob job = is_text ? conversation.text_job(turn.text) : conversation.token_job(turn.tokens);
  job.heal = turn.heal;
  return job;
}

TurnWork::TurnWork(WaitingTurn waiting, std::shared_ptr<const Vocabulary> vocabulary,
                   const SamplingParams& session_sampling, TimePoint now)
    : turn(std::move(waiting.turn)),
      sink(std::move(waiting.sink)),
      promise(std::move(waiting.promise)),
      sampling(sampling_of_branch(turn.sampling ? *turn.sampling : session_sampling, turn.branch)),
      answer(vocabulary, turn.limits),
      credit(turn.credit),
      started(now),
      deadline(started + turn.time_limit),
      vocabulary_(std::move(vocabulary)) {}

void TurnWork::planned(const PromptPlan& plan) {
  kept = plan.keep;
  healed_ = plan.healed;
  answer.begins_with(plan.healed);
}

void TurnWork::began(std::int64_t total, std::int64_t in_cache) {
  begun = true;
  prompt = total;
  cached = in_cache;
}

void TurnWork::was_admitted(std::int64_t in_cache, TimePoint now) {
  cached = in_cache;
  admitted = now;
}

std::int64_t TurnWork::tokens_left(std::int64_t most, std::int64_t said) const {
  return turn.limits.max_tokens == 0 ? most : turn.limits.max_tokens - said;
}

std::shared_ptr<SamplerState> TurnWork::first_sampler_state(const std::vector<TokenId>& prompt_tokens) const {
  return first_memory(*sampling, prompt_tokens, *vocabulary_, {turn.logits_processor, healed_});
}

std::shared_ptr<SamplerState> TurnWork::accepted(std::shared_ptr<SamplerState> state, const Sampled& sampled) const {
  return troupe::accepted(std::move(state), *sampling, sampled, *vocabulary_);
}

void TurnWork::token_came(TimePoint now) {
  last_token = now;
  if (answer.tokens().empty()) first_token = last_token;
}

void TurnWork::take(Sampled& sampled) {
  std::string text = answer.accept(sampled.token);
  if (turn.logprobs >= 0) logprobs_.push_back(sampled);
  if (!sink) return;
  unsent_.tokens.push_back(sampled.token);
  if (turn.logprobs >= 0) unsent_.logprobs.push_back(std::move(sampled));
  unsent_.text += text;
}

std::optional<TextDelta> TurnWork::release() {
  if (unsent_.text.empty()) return std::nullopt;
  --credit;
  return std::exchange(unsent_, {});
}

std::optional<TextDelta> TurnWork::close(FinishReason reason) {
  if (answer.reason() == FinishReason::none) unsent_.text += answer.end(reason);
  if (!sink || (unsent_.text.empty() && unsent_.tokens.empty())) return std::nullopt;
  return std::exchange(unsent_, {});
}

void TurnWork::add_to(SessionTrace& trace) const {
  trace.prompt_tokens += prompt;
  trace.cached_tokens += cached;
  trace.computed_tokens += computed;
  trace.answer_tokens += std::ssize(answer.tokens());
}

TurnEnd TurnWork::summary() const {
  TurnEnd end;
  end.reason = answer.reason();
  end.text = answer.text();
  end.tokens = answer.tokens();
  end.logprobs = logprobs_;
  end.prompt_tokens = prompt;
  end.cached_tokens = cached;
  end.computed_tokens = computed;
  end.draft_tokens = drafts;
  end.right_drafts = right_drafts;
  end.queued = admitted - started;
  if (!answer.tokens().empty()) {
    end.prefill = first_token - admitted;
    end.decode = last_token - first_token;
  }
  return end;
}

}  // namespace troupe
