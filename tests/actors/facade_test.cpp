#include <atomic>
#include <thread>

#include "actors/troupe.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

Host open_host() {
  HostOptions options;
  options.engine.threads = 1;
  options.engine.kv_memory = std::uint64_t{16} << 20;
  auto host = Host::open(tiny_path(), options);
  if (!host) throw std::runtime_error(host.error().message);
  return std::move(*host);
}

TEST(Facade, serves_sixteen_plain_threads_on_one_object) {
  Host host = open_host();
  auto engine = Engine::open(tiny_path(), lab_options());
  ASSERT_TRUE(engine);
  std::atomic<int> wrong{0};
  std::vector<std::vector<TokenId>> answers(16);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&, i] {
        auto end = host.generate(token_turn(prompt(i, 10 + i), 20, static_cast<std::uint64_t>(i)));
        if (end) answers[static_cast<std::size_t>(i)] = end->tokens;
        wrong += end ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)],
              solo(**engine, token_turn(prompt(i, 10 + i), 20, static_cast<std::uint64_t>(i))));
  }
  promise("C5", "16 threads on one object, each as alone");
}

TEST(Facade, calls_back_on_the_calling_thread_with_the_whole_text) {
  Host host = open_host();
  auto session = host.open_session();
  ASSERT_TRUE(session);
  std::string streamed;
  const auto here = std::this_thread::get_id();
  bool elsewhere = false;
  const auto end = session->take(token_turn(prompt(1, 10), 80), [&](const TextDelta& delta) {
    elsewhere = elsewhere || std::this_thread::get_id() != here;
    streamed += delta.text;
    return true;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(streamed, end->text);
  EXPECT_FALSE(elsewhere);
}

TEST(Facade, stops_when_the_callback_says_so_or_another_thread_does) {
  Host host = open_host();
  auto session = host.open_session();
  ASSERT_TRUE(session);
  int deltas = 0;
  const auto by_callback =
      session->take(token_turn(prompt(1, 10), 900), [&](const TextDelta&) { return ++deltas < 3; });
  ASSERT_TRUE(by_callback);
  EXPECT_EQ(by_callback->reason, FinishReason::cancelled);
  auto other = host.open_session();
  ASSERT_TRUE(other);
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    other->stop();
  });
  Turn slow = token_turn(prompt(2, 10), 900);
  const auto by_thread = other->take(slow, [](const TextDelta&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return true;
  });
  ASSERT_TRUE(by_thread);
  EXPECT_EQ(by_thread->reason, FinishReason::cancelled);
}

TEST(Facade, tells_where_a_sessions_time_and_tokens_went) {
  Host host = open_host();
  auto session = host.open_session();
  ASSERT_TRUE(session && session->take(token_turn(prompt(1, 20), 5)));
  const auto trace = session->trace();
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->times.sum(), trace->age);
  EXPECT_EQ(trace->computed_tokens, 24);
  EXPECT_EQ(trace->answer_tokens, 5);
}

TEST(Facade, answers_shutting_down_when_the_host_is_gone) {
  auto host = std::make_unique<Host>(open_host());
  auto session = host->open_session();
  ASSERT_TRUE(session);
  host.reset();
  const auto refused = session->take(token_turn(prompt(1, 5), 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::shutting_down);
  EXPECT_EQ(session->trace().error().code, ErrorCode::shutting_down);
}

TEST(Facade, names_a_file_that_is_not_there) {
  const auto host = Host::open("/no/such/model.gguf", {});
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code, ErrorCode::not_found);
  EXPECT_NE(host.error().message.find("/no/such/model.gguf"), std::string::npos);
}

TEST(Facade, takes_a_draft_model_with_the_same_tokens_and_refuses_another) {
  const ScratchFolder folder;
  TinyModel other = tiny_model(DType::q4_0);
  other.vocab += 16;
  HostOptions options;
  options.engine.threads = 1;
  options.engine.kv_memory = std::uint64_t{8} << 20;
  options.draft = write_tiny_model(other, folder.file("other.gguf"));
  const auto refused = Host::open(tiny_path(), options);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(options.draft)) << refused.error().message;
  options.draft = tiny_path();
  auto host = Host::open(tiny_path(), options);
  ASSERT_TRUE(host) << host.error().message;
  const Turn turn = token_turn(prompt(1, 20), 30);
  EXPECT_EQ(host->generate(turn)->tokens, open_host().generate(turn)->tokens);
  EXPECT_GT(host->launch_stats()->drafting, Seconds(0));
}

TEST(Facade, keeps_a_turns_time_limit) {
  Host host = open_host();
  auto session = host.open_session();
  ASSERT_TRUE(session);
  Turn turn = token_turn(prompt(1, 5), 1000);
  turn.time_limit = std::chrono::milliseconds(1);
  const auto late = session->take(turn);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timed_out);
  turn = token_turn(prompt(2, 5), 3);
  EXPECT_TRUE(session->take(turn)) << "the session stays usable";
}

}  // namespace
}  // namespace troupe::test
