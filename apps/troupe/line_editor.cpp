#include "apps/troupe/line_editor.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <system_error>
#include <unistd.h>

namespace troupe::app {
namespace {

constexpr int kRemembered = 1000;
constexpr char kStop = 's', kRedraw = 'r';
constexpr const char* kHowToLeave = "\n(Ctrl-C again, Ctrl-D or /quit to leave)\n";

// libedit drops what its locale has no character for. Numbers stay as they are in C: LC_NUMERIC is not touched.
void use_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

char* prompt(EditLine*) {
  static char text[] = ">>> ";
  return text;
}

}  // namespace

LineEditor::LineEditor(Interrupt& interrupt) : interrupt_(interrupt) {
  if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  use_utf8();
  history_.reset(::history_init());
  editor_.reset(::el_init("troupe", stdin, stdout, stderr));
  if (!history_ || !editor_) throw std::bad_alloc();
  HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kRemembered);
  EditLine* const editor = editor_.get();
  ::el_set(editor, EL_PROMPT, prompt);
  ::el_set(editor, EL_HIST, ::history, history_.get());
  ::el_set(editor, EL_CLIENTDATA, this);
  ::el_set(
      editor, EL_GETCFN, +[](EditLine* self, wchar_t* character) {
        void* owner = nullptr;
        ::el_get(self, EL_CLIENTDATA, &owner);
        return static_cast<LineEditor*>(owner)->next_character(*character);
      });
  bind_keys();
}

LineEditor::~LineEditor() {
  for (int end : wake_) ::close(end);
}

// Beyond libedit's own keys of Emacs; a user's ~/.editrc has the last word.
void LineEditor::bind_keys() {
  EditLine* const editor = editor_.get();
  ::el_set(editor, EL_EDITOR, "emacs");
  // The wide form keeps what it is given, the narrow one a copy that it never frees.
  ::el_wset(editor, EL_ADDFN, L"file-name", L"complete the name of a file", ::_el_fn_complete);
  constexpr const char* kKeys[][2] = {
      {"^I", "file-name"},          {"^R", "em-inc-search-prev"}, {"\\e[3~", "ed-delete-next-char"},
      {"\\e[1~", "ed-move-to-beg"}, {"\\e[4~", "ed-move-to-end"}, {"\\e[H", "ed-move-to-beg"},
      {"\\e[F", "ed-move-to-end"},  {"\\e[1;5C", "em-next-word"}, {"\\e[1;5D", "ed-prev-word"}};
  for (const auto& [key, action] : kKeys) ::el_set(editor, EL_BIND, key, action, nullptr);
  ::el_source(editor, nullptr);
}

std::optional<std::string> LineEditor::read() {
  for (;;) {
    auto line = read_once();
    if (!cancelled_) return line;
    if (warned_) break;
    warned_ = true;
    std::fputs(kHowToLeave, stderr);
  }
  interrupted_ = true;
  return std::nullopt;
}

std::optional<std::string> LineEditor::read_once() {
  const auto wake = [this](char why) { [[maybe_unused]] const auto written = ::write(wake_[1], &why, 1); };
  const Interrupt::Guard guard(
      interrupt_, [wake] { wake(kStop); }, [wake] { wake(kRedraw); });
  cancelled_ = false;
  partial_ = {};
  // Before the prompt is shown, and not after it as libedit does: a Ctrl-D between the two would become a zero byte.
  ::el_set(editor_.get(), EL_PREP_TERM, 1);
  int size = 0;
  const char* const text = ::el_gets(editor_.get(), &size);
  if (cancelled_) return std::nullopt;
  if (text == nullptr || size <= 0) {
    std::fputc('\n', stderr);
    return std::nullopt;
  }
  std::string line(text, static_cast<std::size_t>(size));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  if (!line.empty()) remember(line.c_str());
  return line;
}

void LineEditor::remember(const char* line) {
  HistEvent event;
  ::history(history_.get(), &event, H_ENTER, line);
}

// 1: a character; 0: the end of the input, or of this line.
int LineEditor::next_character(wchar_t& character) {
  for (;;) {
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return 0;
    if (char why = 0; ::read(wake_[0], &why, 1) == 1) {
      cancelled_ = why == kStop;
      if (cancelled_) return 0;
      redraw();
    } else if (ready[0].revents != 0) {
      if (const int taken = take_byte(character); taken >= 0) return taken;
    }
  }
}

// As next_character(); -1: no whole character yet.
int LineEditor::take_byte(wchar_t& character) {
  constexpr auto kUnfinished = static_cast<std::size_t>(-2), kInvalid = static_cast<std::size_t>(-1);
  char byte = 0;
  const ssize_t size = ::read(STDIN_FILENO, &byte, 1);
  if (size < 0) return errno == EINTR || errno == EAGAIN ? -1 : 0;
  if (size == 0) return 0;
  warned_ = false;
  const std::size_t used = std::mbrtowc(&character, &byte, 1, &partial_);
  if (used == kUnfinished) return -1;
  if (used == kInvalid) {
    partial_ = {};
    character = L'\uFFFD';  // seen, and not silently lost
  }
  return 1;
}

// The shell may have had the terminal in another mode; libedit draws from where the cursor is.
void LineEditor::redraw() {
  EditLine* const editor = editor_.get();
  std::fputc('\r', stdout);
  ::el_resize(editor);
  ::el_set(editor, EL_PREP_TERM, 0);
  ::el_set(editor, EL_PREP_TERM, 1);
  ::el_set(editor, EL_REFRESH);
}

}  // namespace troupe::app
