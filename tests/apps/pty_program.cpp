#include "tests/apps/pty_program.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {
namespace {

constexpr int kPatience = 60'000;  // milliseconds without a sign of life

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

PtyProgram::PtyProgram(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  const std::vector<char*> words = pointers(command), settings = pointers(environment);
  winsize size{24, 80, 0, 0};
  process_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (process_ < 0) throw std::runtime_error("cannot make a terminal");
  if (process_ > 0) return;
  ::execve(words[0], words.data(), settings.data());
  ::_exit(127);
}

PtyProgram::~PtyProgram() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(terminal_);
}

void PtyProgram::type(std::string_view keys) const {
  if (::write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("the terminal takes no keys");
}

void PtyProgram::send(int signal) const {
  ::kill(process_, signal);
}

void PtyProgram::resize(unsigned short columns) const {
  const winsize size{24, columns, 0, 0};
  ::ioctl(terminal_, TIOCSWINSZ, &size);
}

bool PtyProgram::shows(std::string_view text) {
  for (;;) {
    const std::size_t at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (!read_more()) return false;
  }
}

int PtyProgram::ended() {
  while (read_more()) continue;
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

termios PtyProgram::mode() const {
  termios mode{};
  if (::tcgetattr(terminal_, &mode) != 0) throw std::runtime_error("the terminal has no mode");
  return mode;
}

// The terminal fails to be read when its program has ended.
bool PtyProgram::read_more() {
  pollfd ready{terminal_, POLLIN, 0};
  if (::poll(&ready, 1, kPatience) <= 0) {
    ::kill(process_, SIGKILL);
    return false;
  }
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(terminal_, buffer.data(), buffer.size());
  if (size <= 0) return false;
  screen_.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

}  // namespace troupe::test
