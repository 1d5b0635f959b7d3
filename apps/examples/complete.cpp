// Continues a text: complete MODEL.gguf "Once upon a time"
#include <cstdio>
#include <exception>

#include "actors/troupe.h"

namespace {

int complete(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "use: %s MODEL.gguf TEXT\n", argv[0]);
    return 2;
  }
  auto host = troupe::Host::open(argv[1], {});
  if (!host) {
    std::fprintf(stderr, "%s\n", host.error().message.c_str());
    return 1;
  }
  troupe::Turn turn;
  turn.kind = troupe::Turn::Kind::text;
  turn.text = argv[2];
  turn.limits.max_tokens = 48;
  turn.sampling = troupe::SamplingParams::greedy();
  auto end = host->generate(turn);
  if (!end) {
    std::fprintf(stderr, "%s\n", end.error().message.c_str());
    return 1;
  }
  std::printf("%s%s\n", argv[2], end->text.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return complete(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
