// What the engine's tests share: engines on tiny models and on every backend that this machine can run.
#pragma once

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/engine.h"
#include "tests/support/random.h"
#include "tests/support/test_kv_type.h"

namespace troupe::test {

struct BackendChoice {
  std::string isa;
  int threads = 1;
};

inline std::ostream& operator<<(std::ostream& out, const BackendChoice& choice) {
  return out << choice.isa << " with " << choice.threads << " thread" << (choice.threads == 1 ? "" : "s");
}

// Every instruction-set path that this processor has.
inline std::vector<std::string> supported_paths() {
  std::vector<std::string> paths;
  for (Isa isa : kIsas) {
    if (supported(isa)) paths.push_back(name(isa));
  }
  return paths;
}

inline EngineOptions tiny_options(const BackendChoice& choice) {
  EngineOptions options;
  options.isa = choice.isa;
  options.threads = choice.threads;
  options.kv_type = kv_type_under_test();
  options.kv_memory = std::uint64_t{32} << 20;
  options.max_rows = 1024;
  options.poison_pages = true;
  return options;
}

inline std::unique_ptr<Engine> open_engine(const std::string& path, const EngineOptions& options) {
  auto engine = Engine::open(path, options);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

inline std::unique_ptr<Engine> open_on(std::unique_ptr<Backend> backend, const std::string& path,
                                       const EngineOptions& options) {
  auto engine = Engine::open_on(std::move(backend), path, options);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

// Ordinary tokens: never one of the tiny models' three control tokens.
inline std::vector<TokenId> random_tokens(Random& random, std::int64_t count, std::int64_t vocabulary) {
  std::vector<TokenId> tokens;
  for (; count > 0; --count) tokens.push_back(static_cast<TokenId>(3 + random.below(vocabulary - 3)));
  return tokens;
}

// The raw logits of every token of a sequence that starts from nothing: [tokens][vocabulary], in slices of `slice`.
inline std::vector<float> all_logits(Engine& engine, const std::vector<TokenId>& tokens, std::size_t slice = 64) {
  const auto vocabulary = static_cast<std::size_t>(engine.shape().vocabulary);
  std::vector<float> logits(tokens.size() * vocabulary);
  KvCache cache(engine.pages());
  if (!cache.reserve(static_cast<std::int64_t>(tokens.size()))) throw std::runtime_error("no pages");
  for (std::size_t at = 0; at < tokens.size(); at += slice) {
    const std::size_t rows = std::min(slice, tokens.size() - at);
    const KvLease lease = cache.lend();
    Slice one{.cache = &lease,
              .position = static_cast<std::int64_t>(at),
              .tokens = std::span(tokens).subspan(at, rows),
              .logits = std::span(logits).subspan(at * vocabulary, rows * vocabulary)};
    engine.run({&one, 1});
    if (one.failed) throw std::runtime_error(one.failure);
    cache.commit(static_cast<std::int64_t>(at + rows));
  }
  return logits;
}

}  // namespace troupe::test
