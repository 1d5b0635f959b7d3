#include "runtime/record/told_sessions.h"

#include <algorithm>
#include <utility>

#include "runtime/sampling/memory.h"

namespace troupe {
namespace {

Error not_there() {
  return {ErrorCode::bad_input, "the record says what cannot be: a step goes on where its session was not"};
}

}  // namespace

ToldSessions::Told ToldSessions::told(const StepOrigin& origin) {
  return {origin.key,
          origin.background,
          origin.processed,
          origin.past,
          std::nullopt,
          std::make_shared<const SamplingParams>(origin.sampling),
          origin.state ? std::make_shared<SamplerState>(*origin.state) : nullptr};
}

Result<Step> ToldSessions::step(const StepArrived& arrived, std::shared_ptr<std::atomic<bool>> withdrawn) {
  if (arrived.origin) told_[arrived.session] = told(*arrived.origin);
  const auto known = told_.find(arrived.session);
  const auto position = static_cast<std::size_t>(arrived.position);
  if (known == told_.end() || position > known->second.tokens.size()) return not_there();
  Told& session = known->second;
  session.tokens.resize(position);
  session.tokens.insert(session.tokens.end(), arrived.tokens.begin(), arrived.tokens.end());
  session.decodes_at.reset();
  if (std::ssize(arrived.tokens) - arrived.drafts == 1) session.decodes_at = position;
  Step step;
  step.session = arrived.session;
  step.key = session.key;
  step.background = session.background;
  step.cache = KvLease::without_pages(arrived.position, std::move(withdrawn));
  step.tokens = arrived.tokens;
  step.sampling = session.sampling;
  step.state = session.state;
  step.no_end_for = arrived.no_end_for;
  step.logprobs = arrived.logprobs;
  step.drafts = arrived.drafts;
  step.draft_odds = arrived.draft_odds;
  return step;
}

Result<void> ToldSessions::guessed(const StepGuessed& guessed) {
  const auto known = told_.find(guessed.session);
  if (known == told_.end() || !known->second.decodes_at) return not_there();
  auto& tokens = known->second.tokens;
  tokens.resize(*known->second.decodes_at + 1);
  tokens.insert(tokens.end(), guessed.tokens.begin(), guessed.tokens.end());
  return std::ssize(tokens) <= context_ ? Result<void>() : not_there();
}

Result<std::span<const TokenId>> ToldSessions::past(const Slice& slice) const {
  const auto& tokens = told_.at(slice.session).tokens;
  if (slice.position + std::ssize(slice.tokens) > std::ssize(tokens)) return not_there();
  return std::span(tokens).first(static_cast<std::size_t>(slice.position));
}

void ToldSessions::gave(SessionId session, const SliceOutcome& outcome) {
  Told& known = told_.at(session);
  if (!outcome.sampled || !known.state) return;
  const auto accept = [&](const Sampled& sampled) {
    known.state = accepted(std::move(known.state), *known.sampling, sampled, *vocabulary_);
  };
  accept(*outcome.sampled);
  std::ranges::for_each(outcome.after, accept);
}

}  // namespace troupe
