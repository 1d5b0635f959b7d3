// The commands of the chat.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "apps/troupe/chat.h"
#include "apps/troupe/chat_file.h"
#include "apps/troupe/memory.h"

namespace troupe::app {
namespace {

constexpr const char* kHelp =
    "  /reset          begin a new conversation\n"
    "  /system [TEXT]  begin a new conversation with this system message; without one: the model's own\n"
    "  /seed N         sample with this seed from now on\n"
    "  /stats          tokens and speed of the last answer, where the conversation's time went, and the engine\n"
    "  /save FILE      keep the conversation (its text and tokens) in a file\n"
    "  /load FILE      go on from a file\n"
    "  /help  /quit    (Ctrl-C stops an answer; at the prompt it clears the line, twice leaves; Ctrl-D leaves)\n";
constexpr const char* kBlanks = " \t\r";

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) + 1 - first));
}

std::string_view first_word(std::string_view line) {
  return line.substr(0, line.find_first_of(kBlanks));
}

Error wrong_use(std::string sentence) {
  return {ErrorCode::bad_input, std::move(sentence)};
}

void note(const char* what) {
  std::fprintf(stderr, "(%s)\n", what);
}

void tell_trace(const SessionTrace& trace) {
  const auto seconds = [](std::chrono::nanoseconds time) { return Seconds(time).count(); };
  const PhaseTimes& times = trace.times;
  std::fprintf(stderr, "conversation: turns %lld, tokens answered %lld, computed %lld; %.1f page-seconds\n",
               static_cast<long long>(trace.turns), static_cast<long long>(trace.answer_tokens),
               static_cast<long long>(trace.computed_tokens), trace.page_time.page_seconds());
  std::fprintf(stderr,
               "of its %.1f s: planning %.1f, queued %.1f, prefilling %.1f, decoding %.1f, parked %.1f, idle %.1f, "
               "asleep %.1f\n",
               seconds(trace.age), seconds(times.planning), seconds(times.queued), seconds(times.prefilling),
               seconds(times.decoding), seconds(times.parked), seconds(times.idle), seconds(times.asleep));
}

}  // namespace

// A slash and lower-case letters: what begins with the name of a file is a message.
bool Chat::is_command(std::string_view line) {
  const std::string_view word = first_word(line);
  return word.size() > 1 && word.front() == '/' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

Result<void> Chat::command(const std::string& line) {
  struct Known {
    std::string_view word;
    Result<void> (Chat::*act)(const std::string& rest);
  };
  static constexpr Known kCommands[] = {{"/help", &Chat::help}, {"/quit", &Chat::quit},   {"/exit", &Chat::quit},
                                        {"/bye", &Chat::quit},  {"/reset", &Chat::reset}, {"/system", &Chat::system},
                                        {"/seed", &Chat::seed}, {"/stats", &Chat::stats}, {"/save", &Chat::save},
                                        {"/load", &Chat::load}};
  const std::string_view word = first_word(line);
  for (const Known& known : kCommands) {
    if (known.word == word) return (this->*known.act)(trimmed(std::string_view(line).substr(word.size())));
  }
  return wrong_use(std::string(word) + " is no command; /help lists them");
}

Result<void> Chat::help(const std::string&) {
  std::fputs(kHelp, stderr);
  return {};
}

Result<void> Chat::quit(const std::string&) {
  leaving_ = true;
  return {};
}

Result<void> Chat::reset(const std::string&) {
  auto opened = open(options_.system, std::nullopt);
  if (opened) note("a new conversation");
  return opened;
}

Result<void> Chat::system(const std::string& rest) {
  const std::string text = rest == "\"\"" ? "" : rest;
  auto opened = open(text, std::nullopt);
  if (!opened) return opened;
  options_.system = text;
  note(text.empty() ? "a new conversation with the model's own system message"
                    : "a new conversation with this system message");
  return {};
}

Result<void> Chat::seed(const std::string& rest) {
  std::uint64_t seed = 0;
  const char* const end = rest.data() + rest.size();
  const auto [stop, fault] = std::from_chars(rest.data(), end, seed);
  if (fault != std::errc() || stop != end)
    return wrong_use("/seed wants a whole number from 0 to 18446744073709551615, not '" + rest + "'");
  options_.sampling.params.seed = seed;
  std::fprintf(stderr, "(seed %llu)\n", static_cast<unsigned long long>(seed));
  return {};
}

Result<void> Chat::stats(const std::string&) {
  if (last_) {
    const double tokens = static_cast<double>(last_->tokens.size());
    std::fprintf(
        stderr,
        "last answer: %lld prompt tokens (%lld cached, first token after %.0f ms), %.0f tokens, %.1f tokens/s\n",
        static_cast<long long>(last_->prompt_tokens), static_cast<long long>(last_->cached_tokens),
        1e3 * last_->prefill.count(), tokens, last_->decode.count() > 0 ? (tokens - 1) / last_->decode.count() : 0.0);
  }
  auto trace = session_->trace();
  if (!trace) return trace.error();
  tell_trace(*trace);
  auto info = host_.describe();
  if (!info) return info.error();
  std::fprintf(stderr, "%s; %lld of %lld pages free; %.0f MB resident\n", info->engine.c_str(),
               static_cast<long long>(info->pages_free), static_cast<long long>(info->pages_total),
               resident_megabytes());
  return {};
}

Result<void> Chat::save(const std::string& rest) {
  if (rest.empty()) return wrong_use("/save wants the name of a file");
  auto transcript = session_->transcript();
  if (!transcript) return transcript.error();
  auto saved = save_chat(rest, {info_.model, info_.fingerprint, std::move(*transcript)});
  if (saved) note("saved");
  return saved;
}

// The tokens of another model, or of other arithmetic, mean something else here: the text alone goes on then.
Result<void> Chat::load(const std::string& rest) {
  if (rest.empty() || rest == "-") return wrong_use("/load wants the name of a file; - cannot be one");
  auto saved = load_chat(rest);
  if (!saved) return saved.error();
  const bool same = saved->fingerprint == info_.fingerprint;
  if (!same && saved->transcript.messages.empty())
    return wrong_use(rest + ": of another model, and without messages that this one could go on from");
  if (!same) saved->transcript.tokens.clear();
  if (auto opened = open("", std::move(saved->transcript)); !opened)
    return Error{opened.error().code, rest + ": " + opened.error().message};
  note(same ? "loaded" : "loaded; it is of another model or --kv-type: its text goes on, its tokens are made anew");
  return {};
}

}  // namespace troupe::app
