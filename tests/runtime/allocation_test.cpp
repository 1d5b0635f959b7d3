// Nothing is allocated inside Engine::run once it is warm. This file replaces the global operator new to count.
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

#include "tests/runtime/decorated_backend.h"
#include "tests/runtime/engine_lab.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace {
std::atomic<long> allocations{0};
}

// Not inlined: else GCC sees one end of a pair alone, a malloc() or a free().
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace troupe {
namespace {

// The engine's large memory comes from Backend::allocate, which does not go through operator new.
class CountingBackend final : public test::DecoratedBackend {
 public:
  using DecoratedBackend::DecoratedBackend;
  Buffer allocate(std::size_t bytes) override {
    ++allocations;
    return DecoratedBackend::allocate(bytes);
  }
};

// One launch with a decoding slice of each kind of sampling, and a prefill slice.
class Traffic {
 public:
  explicit Traffic(Engine& engine) : engine_(engine) {
    test::Random random(1);
    for (std::size_t i = 0; i < 6; ++i) {
      caches_.emplace_back(engine.pages());
      EXPECT_TRUE(caches_.back().reserve(400));
      tokens_.push_back(test::random_tokens(random, i == 0 ? 30 : 1, engine.shape().vocabulary));
    }
    params_.resize(caches_.size());
    params_[1] = SamplingParams::greedy();
    params_[2].top_k = 0;
    params_[3].logit_bias = {{5, 1.0f}, {6, -100.0f}};
    params_[4].repetition_penalty = 1.2f;
    state_.in_prompt = {{1, 1}, {2, 1}};
    state_.in_answer = {{3, 2}};
    slices_.resize(caches_.size());
    leases_.resize(caches_.size());
  }

  // How many allocations the launch made.
  long launch() {
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      leases_[i] = caches_[i].lend();
      slices_[i] = {.cache = &leases_[i],
                    .position = caches_[i].length(),
                    .tokens = tokens_[i],
                    .wants_token = i != 0,
                    .sampling = &params_[i],
                    .state = &state_,
                    .logprobs = i == 5 ? 0 : -1};
    }
    const long before = allocations;
    engine_.run(slices_);
    const long made = allocations - before;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      caches_[i].commit(caches_[i].length() + std::ssize(tokens_[i]));
    }
    return made;
  }

 private:
  Engine& engine_;
  std::vector<KvCache> caches_;
  std::vector<std::vector<TokenId>> tokens_;
  std::vector<SamplingParams> params_;
  SamplerState state_;
  std::vector<KvLease> leases_;
  std::vector<Slice> slices_;
};

TEST(EngineAllocation, run_allocates_nothing_once_it_is_warm) {
  ScratchFolder folder;
  for (DType type : {DType::q4_1, DType::f16, DType::q6_k}) {
    const std::string path = write_tiny_model(tiny_model(type), folder.file("model.gguf"));
    for (const std::string& isa : test::supported_paths()) {
      auto backend = make_backend(isa, 2);
      ASSERT_TRUE(backend.ok());
      const auto engine =
          test::open_on(std::make_unique<CountingBackend>(std::move(*backend)), path, test::tiny_options({isa, 2}));
      Traffic traffic(*engine);
      EXPECT_GT(traffic.launch(), 0) << "the counter counts";
      for (int i = 0; i < 10; ++i) EXPECT_EQ(traffic.launch(), 0) << isa << ", launch " << i;
    }
  }
}

}  // namespace
}  // namespace troupe
