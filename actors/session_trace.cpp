// Where a session's time, tokens and pages went.
#include <cstdio>

#include "actors/log.h"
#include "actors/session_state.h"

namespace troupe {
namespace {

std::string seconds_text(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", time.count());
  return text;
}

// One line of key=value for whoever reads logs by program.
std::string line_of(SessionId id, const SessionTrace& trace) {
  const PhaseTimes& times = trace.times;
  std::string line = "session=" + std::to_string(id) + " ended age=" + seconds_text(trace.age);
  const std::pair<const char*, std::chrono::nanoseconds> phases[] = {
      {"idle", times.idle},     {"asleep", times.asleep},         {"planning", times.planning},
      {"queued", times.queued}, {"prefilling", times.prefilling}, {"decoding", times.decoding},
      {"parked", times.parked}};
  for (const auto& [phase, time] : phases) line += std::string(" ") + phase + "=" + seconds_text(time);
  const std::pair<const char*, std::int64_t> counts[] = {{"turns", trace.turns},
                                                         {"prompt_tokens", trace.prompt_tokens},
                                                         {"cached_tokens", trace.cached_tokens},
                                                         {"computed_tokens", trace.computed_tokens},
                                                         {"answer_tokens", trace.answer_tokens}};
  for (const auto& [what, count] : counts) line += std::string(" ") + what + "=" + std::to_string(count);
  return line + " page_seconds=" + seconds_text(Seconds(trace.page_time.page_seconds()));
}

}  // namespace

SessionState::~SessionState() {
  try {
    log_info(line_of(id_, trace()));
  } catch (const std::exception&) {  // no memory for a line of the log: no reason to end the process
  }
}

// No turn any more.
void SessionState::rest() {
  phases_.enter(SessionPhase::idle, now(), length() > 0 && cache_.capacity() == 0);
}

SessionTrace SessionState::trace() const {
  SessionTrace trace = past_;
  if (work_) work_->add_to(trace);
  const TimePoint read = now();
  trace.phase = phases_.phase();
  trace.age = read - born_;
  trace.times = phases_.times(read);
  trace.page_time = account_.paid();
  return trace;
}

}  // namespace troupe
