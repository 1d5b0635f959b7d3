// The chat of `troupe run`: a line is a message or a command (/help lists them), read from the terminal or from a pipe.
//
// A fault of a line, a full disk or not enough memory included, is told in a sentence; the conversation stands as
// before it, and the chat goes on. A piped chat is a script: it ends with 1 when any line failed, and with 130 when
// Ctrl-C stopped an answer. In a terminal /quit and Ctrl-D end with 0, Ctrl-C twice with 130.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "actors/troupe.h"
#include "apps/troupe/interrupt.h"
#include "apps/troupe/line_editor.h"
#include "apps/troupe/options.h"

namespace troupe::app {

struct ChatOptions {
  SamplingFlags sampling;
  TokenWindow window;
  std::string system;
  bool color = false;
};

class Chat {
 public:
  // `editor` is null where the lines come from a pipe.
  Chat(Host host, ChatOptions options, Interrupt& interrupt, LineEditor* editor);

  // The program's exit code.
  int run();

 private:
  Result<void> begin();
  void greet() const;
  std::optional<std::string> next_line();
  std::optional<std::string> piped_line();
  void obey(const std::string& line);
  void fail(const Error& error);
  void leave(int code);

  Result<void> answer(const std::string& text);
  Result<TurnEnd> take_turn(const std::string& text);
  void tell_cut(const TurnEnd& end) const;
  void tell_dropped(const TurnEnd& end) const;
  Result<void> open(const std::string& system, std::optional<Transcript> past);

  // chat_commands.cpp; `rest` is what follows the command's word, without blanks around it.
  static bool is_command(std::string_view line);
  Result<void> command(const std::string& line);
  Result<void> help(const std::string& rest);
  Result<void> quit(const std::string& rest);
  Result<void> reset(const std::string& rest);
  Result<void> system(const std::string& rest);
  Result<void> seed(const std::string& rest);
  Result<void> stats(const std::string& rest);
  Result<void> save(const std::string& rest);
  Result<void> load(const std::string& rest);

  Host host_;
  HostInfo info_;  // as it was at the start
  ChatOptions options_;
  Interrupt& interrupt_;
  LineEditor* editor_;
  std::optional<Session> session_;
  std::optional<TurnEnd> last_;
  bool leaving_ = false;
  int code_ = 0;
};

}  // namespace troupe::app
