#include "runtime/draft_model.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "kernels/fault.h"
#include "runtime/engine.h"
#include "runtime/sampling/memory.h"

namespace troupe {
namespace {

constexpr float kHope = 0.8f;                  // of a model of which nothing is known
constexpr float kFade = 1.0f - 1.0f / 256.0f;  // of what is known, a launch without guesses

std::string quoted(const Vocabulary& vocabulary, TokenId id) {
  return "'" + std::string(vocabulary.bytes(id)) + "'";
}

}  // namespace

DraftEngine DraftEngine::of(std::shared_ptr<Engine> engine) {
  return {[engine](std::span<Slice> batch) { engine->run(batch); }, engine->pages(), engine->text().vocabulary,
          engine->context(), engine->max_rows()};
}

Result<void> same_tokens(const Vocabulary& draft, const Vocabulary& target) {
  if (draft.size() != target.size()) {
    return Error{ErrorCode::bad_input, "its vocabulary has " + std::to_string(draft.size()) +
                                           " tokens and the model's " + std::to_string(target.size()) +
                                           ": a draft model has the model's own vocabulary"};
  }
  for (TokenId id = 0; id < target.size(); ++id) {
    if (draft.bytes(id) == target.bytes(id) && draft.kind(id) == target.kind(id)) continue;
    return Error{ErrorCode::bad_input, "its token " + std::to_string(id) + " is " + quoted(draft, id) +
                                           " and the model's " + quoted(target, id) +
                                           (draft.bytes(id) == target.bytes(id) ? " of another kind" : "") +
                                           ": a draft model has the model's own vocabulary"};
  }
  return {};
}

Result<std::shared_ptr<Engine>> open_draft(const Engine& target, const std::string& path) {
  if (path.empty()) return std::shared_ptr<Engine>();
  auto engine = target.open_beside(path);
  if (!engine) return engine.error();
  auto same = same_tokens(*(*engine)->text().vocabulary, *target.text().vocabulary);
  if (!same) return Error{same.error().code, path + ": " + same.error().message};
  return std::shared_ptr<Engine>(std::move(*engine));
}

DraftModel::DraftModel(DraftEngine engine, std::int32_t most)
    : engine_(std::move(engine)), most_(most), caches_(engine_.pages, engine_.run, engine_.max_rows) {}

// -- what was said --

void DraftModel::arrived(const Step& step) {
  auto known = told_.find(step.session);
  if (step.past) {
    if (known == told_.end()) {
      if (told_.size() >= kMostSessions) forget_longest_unused();
      known = told_.try_emplace(step.session).first;
    }
    known->second.tokens = *step.past;
  }
  if (known == told_.end()) return;
  Told& told = known->second;
  told.used = launches_;
  told.guessed = false;
  told.ends_behind.reset();
  const auto position = static_cast<std::size_t>(step.cache.position());
  if (position > told.tokens.size()) {
    told_.erase(known);
    return;
  }
  told.tokens.resize(position);
  told.tokens.insert(told.tokens.end(), step.tokens.begin(), step.tokens.end());
  told.known = told.tokens.size() - static_cast<std::size_t>(step.drafts);
}

void DraftModel::forget_longest_unused() {
  told_.erase(std::ranges::min_element(told_, {}, [](const auto& entry) { return entry.second.used; }));
}

// -- for whom, and how far --

Result<std::span<const DraftModel::Guess>> DraftModel::guess(std::span<const Step* const> steps,
                                                             std::int64_t spare_rows, const LaunchCost& verifying,
                                                             const ReadClock& clock) {
  guesses_.clear();
  ++launches_;
  choose_whom(steps, spare_rows, verifying);
  const bool tries = tries_ > 0;
  try {
    std::int32_t nth = 1;
    for (; nth <= most_ && deeper(verifying); ++nth) {
      if (nth == 1) find_caches();
      launch(clock);
    }
    if (nth == 1) pause();
  } catch (const DeviceFault& fault) {
    return Error{ErrorCode::engine_failed, fault.what()};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "there is no memory for a launch of it"};
  }
  take_guesses(tries);
  return std::span<const Guess>(guesses_);
}

void DraftModel::pause() {
  if (drafting_.empty() || ++pause_ < kPause) return;
  pause_ = 0;
  tries_ = kTryAgain;
}

void DraftModel::take_guesses(bool tries) {
  for (Drafting& draft : drafting_) {
    draft.told->guessed = !draft.guesses.empty();
    draft.told->ends_behind.reset();
    if (draft.ends) draft.told->ends_behind = draft.guesses.size();
    if (draft.guesses.empty()) {
      draft.told->odds.fade(kFade);
    } else {
      draft.told->tokens.resize(draft.told->known);
      draft.told->tokens.insert(draft.told->tokens.end(), draft.guesses.begin(), draft.guesses.end());
      guesses_.push_back({draft.step->session, std::move(draft.guesses), tries ? 1.0f : draft.odds});
    }
  }
  if (guesses_.empty()) odds_.fade(kFade);
  drafting_.clear();
}

// Where the session's own guesses are as good, they stand.
void DraftModel::choose_whom(std::span<const Step* const> steps, std::int64_t spare_rows, const LaunchCost& verifying) {
  drafting_.clear();
  verified_ = {};
  spare_rows_ = spare_rows;
  for (const Step* step : steps) {
    verified_.add(step->cache.position(), 1);
    const auto known = told_.find(step->session);
    const float odds = known == told_.end() ? 0.0f : known->second.odds.of(odds_.of(kHope));
    if (known == told_.end() || (step->drafts > 0 && step->draft_odds >= odds)) {
      spare_rows_ -= step->drafts;
      continue;
    }
    Told& told = known->second;
    const std::int64_t room =
        std::min<std::int64_t>(step->draft_room, engine_.context - static_cast<std::int64_t>(told.known));
    drafting_.push_back({step, &told, odds, std::min<std::int64_t>(room, most_)});
  }
  expected_ = static_cast<double>(verified_.rows);
  seconds_ = verifying.of(verified_);
}

// Whether one more guess pays, and for whom: each by its own row, and all together by the launches that it takes.
bool DraftModel::deeper(const LaunchCost& verifying) {
  LaunchWork wider = verified_, own;
  double gain = 0.0;
  bool anyone = false;
  for (Drafting& draft : drafting_) {
    if (!draft.goes_on()) continue;
    LaunchWork row, with = wider;
    row.add(draft.position(), 1);
    with.add(draft.position(), 1);
    const double odds = std::pow(draft.odds, std::ssize(draft.guesses) + 1);
    const Seconds price = verifying.of(with) - verifying.of(wider) + cost_.of(row) - cost_.of({});
    if (own.rows >= spare_rows_ || (tries_ == 0 && odds * seconds_ <= expected_ * price)) {
      draft.over = true;
      draft.next.clear();
      continue;
    }
    anyone = true;
    gain += odds;
    wider = with;
    own.add(draft.position(), 1);
  }
  const Seconds price = verifying.of(wider) - verifying.of(verified_) + cost_.of(own);
  const bool pays = anyone && (tries_ > 0 || gain * seconds_ > expected_ * price);
  if (!pays) return false;
  verified_ = wider;
  spare_rows_ -= own.rows;
  expected_ += gain;
  seconds_ += price;
  return true;
}

// What is computed first: all that was said since the last time, and of a long prompt a portion.
void DraftModel::find_caches() {
  caches_.begin_launch();
  computed_.clear();
  for (Drafting& draft : drafting_) {
    if (!draft.goes_on()) continue;
    const auto past = std::span<const TokenId>(draft.told->tokens).first(draft.told->known - 1);
    const auto cache = caches_.find(draft.step->session, past, draft.room);
    draft.over = true;
    if (!cache) continue;
    draft.cache = *cache;
    computed_.push_back(&draft);
  }
  catch_up();
}

// Who is nearest comes first: where each got a part in turn, answers would end before one of them is caught up with.
void DraftModel::catch_up() {
  std::ranges::stable_sort(computed_, {}, &Drafting::behind);
  std::int64_t portion = kCatchUp, left = engine_.max_rows;
  for (Drafting* draft : computed_) {
    const std::int64_t behind = draft->behind();
    const bool far = behind > 2 * most_;
    const std::int64_t now = std::min({behind, far ? portion : behind, left});
    const auto from = draft->told->tokens.begin() + draft->cache->length();
    draft->next.assign(from, from + now);
    draft->over = now < behind;
    left -= now;
    portion -= far ? now : 0;
  }
}

// -- launches --

Slice DraftModel::Drafting::slice(const KvLease& lease) const {
  Slice slice{.session = step->session, .cache = &lease, .position = lease.position(), .tokens = next};
  slice.wants_token = !over;
  slice.sampling = step->sampling.get();
  slice.state = state ? state.get() : step->state.get();
  slice.no_end_for = std::max(0, step->no_end_for - static_cast<std::int32_t>(guesses.size()));
  return slice;
}

// One more token for everybody who has something to compute.
void DraftModel::launch(const ReadClock& clock) {
  computed_.clear();
  leases_.clear();
  slices_.clear();
  LaunchWork work;
  for (Drafting& draft : drafting_) {
    if (draft.next.empty()) continue;
    work.add(draft.cache->length(), std::ssize(draft.next));
    computed_.push_back(&draft);
    leases_.push_back(draft.cache->lend());
  }
  for (std::size_t i = 0; i < computed_.size(); ++i) slices_.push_back(computed_[i]->slice(leases_[i]));
  if (slices_.empty()) return;
  const TimePoint began = clock();
  const bool ran = run();
  const Seconds took = clock() - began;
  cost_.learn(work, took);
  spent_ += took;
  tries_ = std::max(0, tries_ - 1);
  pause_ = 0;
  leases_.clear();
  for (std::size_t i = 0; i < computed_.size(); ++i) {
    if (ran && !slices_[i].failed) {
      settle(*computed_[i], slices_[i]);
    } else {
      drop(*computed_[i]);
    }
  }
}

// False where somebody's data broke it.
bool DraftModel::run() {
  try {
    engine_.run(slices_);
    return true;
  } catch (const StepFault&) {
    return false;
  }
}

void DraftModel::settle(Drafting& draft, const Slice& slice) {
  draft.cache->commit(slice.position + std::ssize(draft.next));
  caches_.computed(draft.step->session, draft.next);
  draft.next.clear();
  draft.ends = slice.wants_token && engine_.vocabulary->ends_answer(slice.sampled.token);  // nothing follows it
  draft.over = draft.over || draft.ends;
  if (!slice.wants_token || draft.ends) return;
  draft.guesses.push_back(slice.sampled.token);
  if (!draft.goes_on()) return;
  draft.next = {slice.sampled.token};
  if (slice.state == nullptr) return;
  if (!draft.state) draft.state = std::make_shared<SamplerState>(*slice.state);
  draft.state = accepted(std::move(draft.state), *slice.sampling, slice.sampled, *engine_.vocabulary);
}

// What was lent for a launch that failed counts for nothing. A guess that cost its time and did not come is a wrong
// one.
void DraftModel::drop(Drafting& draft) {
  draft.cache->revoke();
  draft.next.clear();
  draft.over = true;
  count(*draft.told, false);
}

// -- what was right --

void DraftModel::count(Told& told, bool right) {
  told.odds.count(right);
  odds_.count(right);
}

// An end is no guess that is computed, but it was expected, and is right or wrong as they are.
void DraftModel::learn(std::span<const Slice> batch) {
  for (const Slice& slice : batch) {
    const auto known = told_.find(slice.session);
    if (known == told_.end() || slice.failed) continue;
    Told& told = known->second;
    if (told.guessed) {
      for (std::int32_t nth = 0; nth < std::min(slice.drafts, slice.right + 1); ++nth) count(told, nth < slice.right);
    }
    const auto right = static_cast<std::size_t>(slice.right);
    if (!told.ends_behind || right < *told.ends_behind) continue;
    const Sampled& next = *told.ends_behind == 0 ? slice.sampled : slice.after[*told.ends_behind - 1];
    count(told, engine_.vocabulary->ends_answer(next.token));
  }
}

}  // namespace troupe
