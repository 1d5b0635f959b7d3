// PtyProgram: a program at a terminal of its own, which a test types into and looks at.
//
//     PtyProgram program({"/bin/cat"}, {"TERM=xterm"});
//     program.type("hello\r");
//     EXPECT_TRUE(program.shows("hello"));
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <termios.h>
#include <vector>

namespace troupe::test {

class PtyProgram {
 public:
  PtyProgram(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  PtyProgram(const PtyProgram&) = delete;
  PtyProgram& operator=(const PtyProgram&) = delete;
  ~PtyProgram();  // a program that still runs is killed

  void type(std::string_view keys) const;
  void send(int signal) const;
  void resize(unsigned short columns) const;
  // Waits until the text comes, behind what was waited for before. False: it ended without, or a minute has passed.
  bool shows(std::string_view text);
  // Waits for the end: the exit code, or 128 + the signal.
  int ended();
  // Everything that came so far.
  const std::string& screen() const { return screen_; }
  termios mode() const;

 private:
  bool read_more();

  int terminal_ = -1;
  pid_t process_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

}  // namespace troupe::test
