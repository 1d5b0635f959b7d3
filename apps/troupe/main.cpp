// troupe: talk with a model, complete text, look into files, measure.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <unistd.h>

#include "apps/troupe/command.h"
#include "apps/troupe/output.h"

namespace troupe::app {
namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App program("troupe: concurrent LLM generation, one batched launch for every conversation");
  program.set_version_flag("--version", TROUPE_VERSION);
  program.require_subcommand(1);
  Action action;
  add_run(program, action);
  add_complete(program, action);
  add_inspect(program, action);
  add_bench(program, action);
  add_tokenize(program, action);
  add_perplexity(program, action);
  add_replay(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return program.exit(wanted);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "troupe: %s\nRun troupe --help, or troupe COMMAND --help.\n", error.what());
    return kWrongUse;
  }
  return action();
}

// The system may refuse memory to any thread, CAF's own among them, where nobody can catch it: that too ends with a
// sentence. Anything else that nobody caught is a fault, and leaves its core.
[[noreturn]] void end_uncaught() {
  constexpr std::string_view kSentence = "troupe: there is not enough memory for this\n";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
    ::_exit(kFailed);
  } catch (...) {
    std::fprintf(stderr, "troupe: a fault of its own: a thread was left by an exception\n");
  }
  std::abort();
}

int run_without_throwing(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: a fault of its own: %s\n", error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace troupe::app

int main(int argc, char** argv) {
  troupe::app::prepare_streams();
  std::set_terminate(troupe::app::end_uncaught);
  return troupe::app::exit_code_after_output(troupe::app::run_without_throwing(argc, argv));
}
