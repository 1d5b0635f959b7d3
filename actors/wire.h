// How records cross the wire: one `inspect` a record.
//
// Floats and doubles are written as the integer of their bits, never as text or as floating point: an infinite or NaN
// float in a remote message can silence a whole link. Containers are bounded where they are read (records.h limits are
// checked again by whoever acts on a record: the wire is not trusted).
#pragma once

#include <bit>
#include <caf/all.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "actors/records.h"

namespace troupe {

// A field holding a float, a double or Seconds, as its bits.
template <class Inspector, class Float>
auto bits_field(Inspector& f, caf::string_view field_name, Float& value) {
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  auto get = [&value] { return std::bit_cast<Bits>(value); };
  auto set = [&value](Bits bits) {
    value = std::bit_cast<Float>(bits);
    return true;
  };
  return f.field(field_name, get, set);
}

// A time in nanoseconds.
template <class Inspector>
auto time_field(Inspector& f, caf::string_view field_name, std::chrono::nanoseconds& value) {
  auto get = [&value] { return static_cast<std::int64_t>(value.count()); };
  auto set = [&value](std::int64_t count) {
    value = std::chrono::nanoseconds(count);
    return true;
  };
  return f.field(field_name, get, set);
}

// An enum as its number; numbers past `last` are refused.
template <class Inspector, class Enum>
auto enum_field(Inspector& f, caf::string_view field_name, Enum& value, Enum last) {
  auto get = [&value] { return static_cast<std::uint8_t>(value); };
  auto set = [&value, last](std::uint8_t number) {
    if (number > static_cast<std::uint8_t>(last)) return false;
    value = static_cast<Enum>(number);
    return true;
  };
  return f.field(field_name, get, set);
}

// ErrorCode as CAF wants an error category.
inline std::string to_string(ErrorCode code) {
  return name(code);
}
inline bool from_string(caf::string_view text, ErrorCode& out) {
  for (int i = 1; i <= static_cast<int>(ErrorCode::engine_failed); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (std::string_view(text.data(), text.size()) != name(code)) continue;
    out = code;
    return true;
  }
  return false;
}
inline bool from_integer(std::uint8_t number, ErrorCode& out) {
  out = static_cast<ErrorCode>(number);
  return number >= 1 && number <= static_cast<std::uint8_t>(ErrorCode::engine_failed);
}
template <class Inspector>
bool inspect(Inspector& f, ErrorCode& code) {
  return caf::default_enum_inspect(f, code);
}

template <class Inspector>
bool inspect(Inspector& f, Message& x) {
  return f.object(x).fields(f.field("role", x.role), f.field("content", x.content));
}

template <class Inspector>
bool inspect(Inspector& f, TokenLogprob& x) {
  return f.object(x).fields(f.field("token", x.token), bits_field(f, "logprob", x.logprob));
}

template <class Inspector>
bool inspect(Inspector& f, Sampled& x) {
  return f.object(x).fields(f.field("token", x.token), bits_field(f, "logprob", x.logprob), f.field("top", x.top),
                            bits_field(f, "surprise", x.surprise));
}

template <class Inspector>
bool inspect(Inspector& f, SamplingParams& x) {
  using BiasBits = std::vector<std::pair<TokenId, std::uint32_t>>;
  auto get_bias = [&x] {
    BiasBits bits;
    for (const auto& [token, bias] : x.logit_bias) bits.emplace_back(token, std::bit_cast<std::uint32_t>(bias));
    return bits;
  };
  auto set_bias = [&x](const BiasBits& bits) {
    x.logit_bias.clear();
    for (const auto& [token, bias] : bits) x.logit_bias.emplace_back(token, std::bit_cast<float>(bias));
    return true;
  };
  return f.object(x).fields(
      bits_field(f, "temperature", x.temperature), f.field("top_k", x.top_k), bits_field(f, "top_p", x.top_p),
      bits_field(f, "min_p", x.min_p), bits_field(f, "repetition_penalty", x.repetition_penalty),
      bits_field(f, "frequency_penalty", x.frequency_penalty), bits_field(f, "presence_penalty", x.presence_penalty),
      f.field("logit_bias", get_bias, set_bias), f.field("seed", x.seed),
      bits_field(f, "dynatemp_range", x.dynatemp_range), bits_field(f, "dynatemp_exponent", x.dynatemp_exponent),
      bits_field(f, "typical_p", x.typical_p), bits_field(f, "xtc_probability", x.xtc_probability),
      bits_field(f, "xtc_threshold", x.xtc_threshold), bits_field(f, "dry_multiplier", x.dry_multiplier),
      bits_field(f, "dry_base", x.dry_base), f.field("dry_allowed_length", x.dry_allowed_length),
      f.field("dry_sequence_breakers", x.dry_sequence_breakers), f.field("mirostat", x.mirostat),
      bits_field(f, "mirostat_tau", x.mirostat_tau), bits_field(f, "mirostat_eta", x.mirostat_eta));
}

template <class Inspector>
bool inspect(Inspector& f, TurnLimits& x) {
  return f.object(x).fields(f.field("max_tokens", x.max_tokens), f.field("min_tokens", x.min_tokens),
                            f.field("ignore_eos", x.ignore_eos), f.field("stop", x.stop),
                            f.field("end_tokens", x.end_tokens));
}

inline std::string to_string(SessionPhase phase) {
  return name(phase);
}
inline bool from_string(caf::string_view text, SessionPhase& out) {
  for (int i = 0; i <= static_cast<int>(SessionPhase::parked); ++i) {
    const auto phase = static_cast<SessionPhase>(i);
    if (std::string_view(text.data(), text.size()) != name(phase)) continue;
    out = phase;
    return true;
  }
  return false;
}
inline bool from_integer(std::uint8_t number, SessionPhase& out) {
  out = static_cast<SessionPhase>(number);
  return number <= static_cast<std::uint8_t>(SessionPhase::parked);
}
template <class Inspector>
bool inspect(Inspector& f, SessionPhase& phase) {
  return caf::default_enum_inspect(f, phase);
}

template <class Inspector>
bool inspect(Inspector& f, Transcript& x) {
  return f.object(x).fields(f.field("messages", x.messages), f.field("tokens", x.tokens));
}

template <class Inspector>
bool inspect(Inspector& f, TokenWindow& x) {
  return f.object(x).fields(f.field("tokens", x.tokens), f.field("sinks", x.sinks));
}

template <class Inspector>
bool inspect(Inspector& f, OpenSession& x) {
  return f.object(x).fields(f.field("system", x.system), f.field("past", x.past), f.field("sampling", x.sampling),
                            f.field("key", x.key), f.field("window", x.window));
}

template <class Inspector>
bool inspect(Inspector& f, Turn& x) {
  if constexpr (!Inspector::is_loading) {
    if (x.logits_processor && !f.has_human_readable_format()) {
      f.emplace_error(caf::sec::unsafe_type, "a turn with a logits processor cannot leave its process");
      return false;
    }
  }
  auto get_limit = [&x] { return static_cast<std::int64_t>(x.time_limit.count()); };
  auto set_limit = [&x](std::int64_t ms) {
    x.time_limit = std::chrono::milliseconds(ms);
    return true;
  };
  return f.object(x).fields(enum_field(f, "kind", x.kind, Turn::Kind::tokens), f.field("role", x.role),
                            f.field("text", x.text), f.field("tokens", x.tokens), f.field("heal", x.heal),
                            f.field("limits", x.limits), f.field("sampling", x.sampling),
                            f.field("logprobs", x.logprobs), f.field("branch", x.branch), f.field("credit", x.credit),
                            f.field("time_limit_ms", get_limit, set_limit), f.field("background", x.background));
}

template <class Inspector>
bool inspect(Inspector& f, TextDelta& x) {
  return f.object(x).fields(f.field("text", x.text), f.field("tokens", x.tokens), f.field("logprobs", x.logprobs),
                            f.field("dropped_tokens", x.dropped_tokens));
}

template <class Inspector>
bool inspect(Inspector& f, PageTime& x) {
  return f.object(x).fields(f.field("seconds", x.seconds), f.field("nanoseconds", x.nanoseconds));
}

template <class Inspector>
bool inspect(Inspector& f, PageBill& x) {
  return f.object(x).fields(f.field("total", x.total), f.field("house", x.house), f.field("living", x.living),
                            f.field("ended", x.ended));
}

template <class Inspector>
bool inspect(Inspector& f, PhaseTimes& x) {
  return f.object(x).fields(time_field(f, "idle", x.idle), time_field(f, "asleep", x.asleep),
                            time_field(f, "planning", x.planning), time_field(f, "queued", x.queued),
                            time_field(f, "prefilling", x.prefilling), time_field(f, "decoding", x.decoding),
                            time_field(f, "parked", x.parked));
}

template <class Inspector>
bool inspect(Inspector& f, SessionTrace& x) {
  return f.object(x).fields(f.field("phase", x.phase), time_field(f, "age", x.age), f.field("times", x.times),
                            f.field("turns", x.turns), f.field("prompt_tokens", x.prompt_tokens),
                            f.field("cached_tokens", x.cached_tokens), f.field("computed_tokens", x.computed_tokens),
                            f.field("answer_tokens", x.answer_tokens), f.field("page_time", x.page_time));
}

template <class Inspector>
bool inspect(Inspector& f, TurnEnd& x) {
  return f.object(x).fields(enum_field(f, "reason", x.reason, FinishReason::cancelled), f.field("text", x.text),
                            f.field("tokens", x.tokens), f.field("logprobs", x.logprobs),
                            f.field("prompt_tokens", x.prompt_tokens), f.field("cached_tokens", x.cached_tokens),
                            f.field("computed_tokens", x.computed_tokens), f.field("draft_tokens", x.draft_tokens),
                            f.field("right_drafts", x.right_drafts), f.field("dropped_tokens", x.dropped_tokens),
                            bits_field(f, "queued", x.queued), bits_field(f, "prefill", x.prefill),
                            bits_field(f, "decode", x.decode), bits_field(f, "parked", x.parked),
                            f.field("page_time", x.page_time));
}

template <class Inspector>
bool inspect(Inspector& f, PrefixCounters& x) {
  return f.object(x).fields(f.field("pages", x.pages), f.field("lookups", x.lookups),
                            f.field("tokens_asked", x.tokens_asked), f.field("tokens_found", x.tokens_found),
                            f.field("pages_evicted", x.pages_evicted));
}

template <class Inspector>
bool inspect(Inspector& f, SleepCounters& x) {
  return f.object(x).fields(f.field("in_memory", x.in_memory), f.field("on_disk", x.on_disk),
                            f.field("memory_bytes", x.memory_bytes), f.field("disk_bytes", x.disk_bytes),
                            f.field("woken", x.woken), f.field("lost", x.lost));
}

template <class Inspector>
bool inspect(Inspector& f, HostInfo& x) {
  return f.object(x).fields(f.field("model", x.model), f.field("engine", x.engine),
                            f.field("fingerprint", x.fingerprint), f.field("context", x.context),
                            f.field("pages_total", x.pages_total), f.field("pages_free", x.pages_free),
                            f.field("prefixes", x.prefixes), f.field("sleepers", x.sleepers), f.field("bill", x.bill),
                            f.field("sessions", x.sessions), f.field("waiting", x.waiting),
                            f.field("batcher_restarts", x.batcher_restarts), f.field("ready", x.ready));
}

template <class Inspector>
bool inspect(Inspector& f, LaunchStats& x) {
  return f.object(x).fields(f.field("launches", x.launches), f.field("rows", x.rows), f.field("by_width", x.by_width),
                            f.field("by_decode_width", x.by_decode_width), f.field("drafts", x.drafts),
                            f.field("right_drafts", x.right_drafts), bits_field(f, "busy", x.busy),
                            bits_field(f, "drafting", x.drafting));
}

}  // namespace troupe
