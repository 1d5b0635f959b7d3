// troupe run: a chat in the terminal.
#include <cstdio>
#include <cstdlib>
#include <editline/readline.h>
#include <iostream>
#include <optional>
#include <sstream>
#include <unistd.h>

#include "actors/troupe.h"
#include "apps/troupe/chat_file.h"
#include "apps/troupe/command.h"
#include "apps/troupe/interrupt.h"
#include "apps/troupe/memory.h"
#include "apps/troupe/options.h"

namespace troupe::app {
namespace {

constexpr const char* kHelp =
    "  /reset         begin a new conversation\n"
    "  /system TEXT   begin a new conversation with this system message\n"
    "  /seed N        sample with this seed from now on\n"
    "  /stats         tokens and speed of the last answer, and the engine\n"
    "  /save FILE     keep the conversation (its text and tokens) in a file\n"
    "  /load FILE     go on from a file\n"
    "  /help  /quit   (Ctrl-C stops an answer, a second one quits; Ctrl-D quits)\n";

struct Flags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string system;
};

struct FreeLine {
  void operator()(char* line) const { std::free(line); }
};

class Chat {
 public:
  Chat(Host host, const Flags& flags, Interrupt& interrupt)
      : host_(std::move(host)),
        flags_(flags),
        interrupt_(interrupt),
        terminal_(::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {
    const char* no_color = std::getenv("NO_COLOR");
    color_ = terminal_ && (no_color == nullptr || *no_color == '\0');
  }

  int run() {
    if (auto opened = open(flags_.system, std::nullopt); !opened) return complain(opened.error());
    if (terminal_) greet();
    bool failed = false;
    while (auto line = read_line()) {
      if (line->empty()) continue;
      if (line->front() == '/') {
        if (!command(*line)) break;
      } else {
        failed = !answer(*line) || failed;
      }
    }
    // A piped chat is a script: it must learn that an answer failed.
    return failed && !terminal_ ? kFailed : kDone;
  }

 private:
  void greet() {
    if (auto info = host_.describe()) std::fprintf(stderr, "%s: %s\n", info->model.c_str(), info->engine.c_str());
    std::fputs("Type a message; /help lists the commands.\n", stderr);
  }

  Result<void> open(const std::string& system, std::optional<Transcript> past) {
    auto session = host_.open_session({system, std::move(past), flags_.sampling.params, {}});
    if (!session) return session.error();
    session_.emplace(std::move(*session));
    return {};
  }

  // A line of the terminal, with editing and history, or of the pipe; nothing at the end. A piped input without a
  // newline at its end is a message too.
  std::optional<std::string> read_line() {
    if (!terminal_) {
      std::string line;
      if (std::getline(std::cin, line)) return line;
      return std::nullopt;
    }
    const std::unique_ptr<char, FreeLine> line(::readline(">>> "));
    if (!line) {
      std::fputc('\n', stderr);
      return std::nullopt;
    }
    if (*line != '\0') ::add_history(line.get());
    return std::string(line.get());
  }

  bool answer(const std::string& text) {
    TurnOptions options;
    options.limits.max_tokens = flags_.sampling.max_tokens;
    options.limits.stop = flags_.sampling.stop;
    options.sampling = flags_.sampling.params;
    if (color_) std::fputs("\033[36m", stdout);
    auto end = [&] {
      const Interrupt::Guard guard(interrupt_, [this] { session_->stop(); });
      return session_->say(text, options, [](const TextDelta& delta) {
        std::fwrite(delta.text.data(), 1, delta.text.size(), stdout);
        return std::fflush(stdout) == 0;
      });
    }();
    std::fputs(color_ ? "\033[0m\n" : "\n", stdout);
    std::fflush(stdout);
    if (!end) {
      complain(end.error());
      return false;
    }
    last_ = std::move(*end);
    if (last_->reason == FinishReason::length)
      std::fputs("(cut: the limit of tokens, or the context, is reached)\n", stderr);
    return true;
  }

  // False: leave.
  bool command(const std::string& line) {
    const std::size_t gap = line.find(' ');
    const std::string word = line.substr(0, gap);
    const std::string rest = gap == std::string::npos ? "" : line.substr(gap + 1);
    if (word == "/quit" || word == "/exit" || word == "/bye") return false;
    if (word == "/help") {
      std::fputs(kHelp, stderr);
    } else if (word == "/reset") {
      report(open(system_.empty() ? flags_.system : system_, std::nullopt), "a new conversation");
    } else if (word == "/system") {
      system_ = rest;
      report(open(system_, std::nullopt), "a new conversation with this system message");
    } else if (word == "/seed") {
      set_seed(rest);
    } else if (word == "/stats") {
      show_stats();
    } else if (word == "/save") {
      save(rest);
    } else if (word == "/load") {
      load(rest);
    } else {
      std::fprintf(stderr, "%s is no command; /help lists them\n", word.c_str());
    }
    return true;
  }

  static void report(const Result<void>& done, const char* what) {
    if (done) {
      std::fprintf(stderr, "(%s)\n", what);
    } else {
      complain(done.error());
    }
  }

  void set_seed(const std::string& text) {
    std::istringstream in(text);
    std::uint64_t seed = 0;
    if (in >> seed && in.eof()) {
      flags_.sampling.params.seed = seed;
      std::fprintf(stderr, "(seed %llu)\n", static_cast<unsigned long long>(seed));
    } else {
      std::fputs("/seed wants a whole number\n", stderr);
    }
  }

  void save(const std::string& path) {
    if (path.empty()) return static_cast<void>(std::fputs("/save wants a file name\n", stderr));
    auto transcript = session_->transcript();
    report(transcript ? save_chat(path, *transcript) : Result<void>(transcript.error()), "saved");
  }

  void load(const std::string& path) {
    if (path.empty()) return static_cast<void>(std::fputs("/load wants a file name\n", stderr));
    auto transcript = load_chat(path);
    report(transcript ? open("", std::move(*transcript)) : Result<void>(transcript.error()),
           "loaded; the next turn computes it anew");
  }

  void show_stats() {
    if (last_) {
      const double tokens = static_cast<double>(last_->tokens.size());
      std::fprintf(
          stderr,
          "last answer: %lld prompt tokens (%lld cached, first token after %.0f ms), %.0f tokens, %.1f tokens/s\n",
          static_cast<long long>(last_->prompt_tokens), static_cast<long long>(last_->cached_tokens),
          1e3 * last_->prefill.count(), tokens, last_->decode.count() > 0 ? (tokens - 1) / last_->decode.count() : 0.0);
    }
    if (auto info = host_.describe()) {
      std::fprintf(stderr, "%s; %lld of %lld pages free; %.0f MB resident\n", info->engine.c_str(),
                   static_cast<long long>(info->pages_free), static_cast<long long>(info->pages_total),
                   resident_megabytes());
    }
  }

  Host host_;
  Flags flags_;
  Interrupt& interrupt_;
  bool terminal_, color_ = false;
  std::string system_;
  std::optional<Session> session_;
  std::optional<TurnEnd> last_;
};

int run(const Flags& flags) {
  Interrupt interrupt;  // before the host starts its threads
  auto host = Host::open(flags.model.model, {.engine = flags.model.engine_options()});
  if (!host) return complain(host.error());
  return Chat(std::move(*host), flags, interrupt).run();
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* command =
      program.add_subcommand("run", "Chat in the terminal, or with what is piped in (a message a line)");
  auto flags = std::make_shared<Flags>();
  flags->model.add_to(*command);
  flags->sampling.add_to(*command);
  command->add_option("--system", flags->system, "The system message");
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace troupe::app
