// The lines that are typed in a terminal, edited and remembered (libedit). Any character of Unicode: the text is UTF-8,
// also where the locale would have it otherwise.
//
// Ctrl-C clears the line and says how to leave; a second one with nothing typed between leaves. A signal never ends the
// input: a terminal of another size, or one that comes back from a suspended program, is drawn again.
// Make it before threads are started (it sets the locale).
#pragma once

#include <cwchar>
#include <histedit.h>
#include <memory>
#include <optional>
#include <string>

#include "apps/troupe/interrupt.h"

namespace troupe::app {

class LineEditor {
 public:
  explicit LineEditor(Interrupt& interrupt);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  // The next line; nothing when the user leaves: by Ctrl-D, or by Ctrl-C, which interrupted() tells.
  std::optional<std::string> read();
  bool interrupted() const { return interrupted_; }

 private:
  std::optional<std::string> read_once();
  void bind_keys();
  void remember(const char* line);
  int next_character(wchar_t& character);
  int take_byte(wchar_t& character);
  void redraw();

  Interrupt& interrupt_;
  int wake_[2] = {-1, -1};  // the thread of signals wakes the one that waits for a key
  std::unique_ptr<History, void (*)(History*)> history_{nullptr, ::history_end};
  std::unique_ptr<EditLine, void (*)(EditLine*)> editor_{nullptr, ::el_end};
  std::mbstate_t partial_{};  // of a character whose bytes are still coming
  bool cancelled_ = false;    // the line: by Ctrl-C
  bool warned_ = false;       // how to leave, and nothing was typed since
  bool interrupted_ = false;
};

}  // namespace troupe::app
