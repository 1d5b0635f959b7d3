// stdout, where the whole program's results go, and what becomes of a result that nobody gets.
//
// A write that failed (the disk is full, stdout is closed) ends the program with 1 and a sentence that has the system's
// reason. A reader that has left, as `head` does, ends the work as soon as it is noticed, with 1 and no message: no
// signal kills the program in the middle, so files are whole and sessions closed.
#pragma once

#include <string_view>

namespace troupe::app {

// Call it first. Closed standard streams get a number that fails, or a file opened later would be written as stdout;
// SIGPIPE and SIGXFSZ become errors of the write.
void prepare_streams();

// Writes and flushes. False: this or an earlier text did not arrive, and going on is of no use.
bool print(std::string_view text);

// The program's exit code: `code` when all that was printed has arrived.
int exit_code_after_output(int code);

}  // namespace troupe::app
