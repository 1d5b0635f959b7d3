// A chat of several turns, streamed: chat MODEL.gguf "Hello" "And what else?" ...
// The second turn computes only its own tokens: what came before is in the session's cache.
#include <cstdio>
#include <exception>

#include "actors/troupe.h"

namespace {

int chat(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "use: %s MODEL.gguf MESSAGE...\n", argv[0]);
    return 2;
  }
  auto host = troupe::Host::open(argv[1], {});
  auto session = host ? host->open_session({.system = "You are brief and friendly."}) : host.error();
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    return 1;
  }
  troupe::TurnOptions options;
  options.limits.max_tokens = 64;
  options.sampling = troupe::SamplingParams::greedy();
  for (int i = 2; i < argc; ++i) {
    std::printf("> %s\n", argv[i]);
    auto end = session->say(argv[i], options, [](const troupe::TextDelta& delta) {
      std::fputs(delta.text.c_str(), stdout);
      return true;
    });
    if (!end) {
      std::fprintf(stderr, "%s\n", end.error().message.c_str());
      return 1;
    }
    std::printf("\n(%lld prompt tokens, %lld of them from the cache)\n", static_cast<long long>(end->prompt_tokens),
                static_cast<long long>(end->cached_tokens));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return chat(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
