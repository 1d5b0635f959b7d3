#include "apps/troupe/chat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <utility>

#include "apps/troupe/caught.h"
#include "apps/troupe/command.h"
#include "apps/troupe/output.h"
#include "runtime/text/printable.h"

namespace troupe::app {
namespace {

constexpr std::size_t kLongestName = 100;  // of what the file calls itself
constexpr const char* kMoreRoom =
    "/reset begins a new conversation (/save keeps this one), --context at the start gives a larger one, --window one "
    "without end";

// The answer's colour, taken back however the answer ends.
class Colored {
 public:
  explicit Colored(bool on) : on_(on) {
    if (on_) std::fputs("\033[36m", stdout);
  }
  Colored(const Colored&) = delete;
  Colored& operator=(const Colored&) = delete;
  ~Colored() { std::fputs(on_ ? "\033[0m\n" : "\n", stdout); }

 private:
  bool on_;
};

}  // namespace

Chat::Chat(Host host, ChatOptions options, Interrupt& interrupt, LineEditor* editor)
    : host_(std::move(host)), options_(std::move(options)), interrupt_(interrupt), editor_(editor) {}

int Chat::run() {
  if (auto begun = begin(); !begun) return complain(begun.error());
  if (editor_ != nullptr) greet();
  while (!leaving_) {
    const auto line = next_line();
    if (!line) break;
    if (!line->empty()) obey(*line);
  }
  return code_;
}

Result<void> Chat::begin() {
  auto info = host_.describe();
  if (!info) return info.error();
  info_ = std::move(*info);
  return open(options_.system, std::nullopt);
}

void Chat::greet() const {
  std::fprintf(stderr, "%s: %s\n", printable(info_.model, kLongestName).c_str(), info_.engine.c_str());
  std::fputs("Type a message; /help lists the commands.\n", stderr);
}

std::optional<std::string> Chat::next_line() {
  if (editor_ == nullptr) return piped_line();
  auto line = editor_->read();
  if (editor_->interrupted()) leave(kInterrupted);
  return line;
}

// What stands before the end of the input without a newline is a message too.
std::optional<std::string> Chat::piped_line() {
  std::string line;
  errno = 0;
  if (std::getline(std::cin, line)) return line;
  if (std::cin.bad() || std::ferror(stdin) != 0) {
    const std::string reason = errno == 0 ? "the input is broken" : std::strerror(errno);
    fail({ErrorCode::io, "cannot read the messages: " + reason});
  }
  return std::nullopt;
}

void Chat::obey(const std::string& line) {
  const auto done = caught([&] { return is_command(line) ? command(line) : answer(line); });
  if (done) return;
  session_->stop();  // a turn that a fault left alone
  fail(done.error());
}

// Whoever sits at a terminal has read it; a script has only the exit code.
void Chat::fail(const Error& error) {
  complain(error);
  if (editor_ == nullptr) code_ = kFailed;
}

void Chat::leave(int code) {
  leaving_ = true;
  code_ = code;
}

Result<void> Chat::answer(const std::string& text) {
  auto end = take_turn(text);
  if (!print("")) leave(kFailed);  // main tells why
  if (!end) {
    Error error = end.error();
    if (error.code == ErrorCode::context_length) error.message += std::string("; ") + kMoreRoom;
    return error;
  }
  if (end->reason == FinishReason::length) tell_cut(*end);
  tell_dropped(*end);
  if (end->reason == FinishReason::cancelled && editor_ == nullptr && !leaving_) leave(kInterrupted);
  last_ = std::move(*end);
  return {};
}

Result<TurnEnd> Chat::take_turn(const std::string& text) {
  TurnOptions options;
  options.limits.max_tokens = options_.sampling.max_tokens;
  options.limits.stop = options_.sampling.stop;
  options.sampling = options_.sampling.params;
  const Interrupt::Guard guard(interrupt_, [this] { session_->stop(); });
  const Colored colored(options_.color);
  return session_->say(text, options, [](const TextDelta& delta) { return print(delta.text); });
}

// One reason stands for both limits; the count tells which it was.
void Chat::tell_cut(const TurnEnd& end) const {
  if (!options_.window.endless() && end.prompt_tokens + static_cast<std::int64_t>(end.tokens.size()) >= info_.context) {
    std::fprintf(stderr, "(cut: the context of %lld tokens is full; %s)\n", static_cast<long long>(info_.context),
                 kMoreRoom);
  } else {
    std::fprintf(stderr, "(cut: --max-tokens %d is reached)\n", options_.sampling.max_tokens);
  }
}

void Chat::tell_dropped(const TurnEnd& end) const {
  if (end.dropped_tokens == 0 || (last_ && last_->dropped_tokens == end.dropped_tokens)) return;
  std::fprintf(stderr, "(of the beginning, %lld tokens are seen no more)\n",
               static_cast<long long>(end.dropped_tokens));
}

// What cannot be opened leaves the conversation that there is.
Result<void> Chat::open(const std::string& system, std::optional<Transcript> past) {
  auto session = host_.open_session({system, std::move(past), options_.sampling.params, {}, options_.window});
  if (!session) return session.error();
  session_.emplace(std::move(*session));
  return {};
}

}  // namespace troupe::app
