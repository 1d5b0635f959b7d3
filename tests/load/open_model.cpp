#include "tests/load/open_model.h"

#include <utility>

namespace troupe::test {

Result<std::unique_ptr<Engine>> open_model(const std::string& path) {
  EngineOptions options;
  options.context = 64;
  options.kv_memory = std::uint64_t{4} << 20;
  options.max_rows = 16;
  auto engine = Engine::open_on(make_reference_backend(), path, options);
  if (!engine) return engine.error();
  const TextSide& text = (*engine)->text();
  if (!text.tokenizer && text.tokenizer_error.code == ErrorCode::bad_input) return text.tokenizer_error;
  return engine;
}

std::vector<TokenId> greedy(Engine& engine, std::vector<TokenId> prompt, std::size_t count) {
  const SamplingParams params = SamplingParams::greedy();
  KvCache cache(engine.pages());
  if (!cache.reserve(static_cast<std::int64_t>(prompt.size() + count))) return {};
  std::vector<TokenId> answer;
  while (answer.size() < count) {
    const KvLease lease = cache.lend();
    Slice slice{
        .cache = &lease, .position = cache.length(), .tokens = prompt, .wants_token = true, .sampling = &params};
    engine.run({&slice, 1});
    if (slice.failed) break;
    cache.commit(cache.length() + static_cast<std::int64_t>(prompt.size()));
    answer.push_back(slice.sampled.token);
    prompt = {slice.sampled.token};
  }
  return answer;
}

}  // namespace troupe::test
