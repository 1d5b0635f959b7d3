#include <bit>
#include <cmath>
#include <limits>

#include "tests/actors/actor_lab.h"
#include "tests/support/sampling.h"

namespace troupe::test {
namespace {

// Out and back in CAF's binary form, as between two nodes.
template <class T>
T through_the_wire(const T& value) {
  caf::actor_system_config config;
  configure(config);
  caf::actor_system system{config};
  caf::byte_buffer bytes;
  caf::binary_serializer out{system, bytes};
  EXPECT_TRUE(out.apply(value));
  T back{};
  caf::binary_deserializer in{system, bytes};
  EXPECT_TRUE(in.apply(back));
  return back;
}

TEST(Records, carry_every_float_as_its_bits) {
  SamplingParams params;
  params.temperature = std::numeric_limits<float>::infinity();
  params.top_p = std::bit_cast<float>(0x7fc12345u);  // a NaN with a payload
  params.min_p = -0.0f;
  params.logit_bias = {{7, std::numeric_limits<float>::denorm_min()}};
  params.seed = 0xfedcba9876543210u;
  const SamplingParams back = through_the_wire(params);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.temperature), std::bit_cast<std::uint32_t>(params.temperature));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.top_p), 0x7fc12345u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.min_p), 0x80000000u);
  EXPECT_EQ(back.logit_bias, params.logit_bias);
  EXPECT_EQ(back.seed, params.seed);
}

TEST(Records, carry_every_rule_of_sampling) {
  const SamplingParams all = every_rule();
  EXPECT_EQ(through_the_wire(all), all);
  EXPECT_EQ(through_the_wire(Sampled{.token = 3, .surprise = 1.5f}).surprise, 1.5f);
}

TEST(Records, carry_a_turn_whole) {
  Turn turn = token_turn({1, 2, 3}, 17);
  turn.kind = Turn::Kind::text;
  turn.text = std::string("a\0b", 3);
  turn.limits.stop = {"x", "yy"};
  turn.limits.end_tokens = {9};
  turn.time_limit = std::chrono::milliseconds(1234);
  turn.logprobs = 3;
  turn.background = true;
  const Turn back = through_the_wire(turn);
  EXPECT_EQ(back.kind, turn.kind);
  EXPECT_EQ(back.text, turn.text);
  EXPECT_EQ(back.tokens, turn.tokens);
  EXPECT_EQ(back.limits.stop, turn.limits.stop);
  EXPECT_EQ(back.limits.end_tokens, turn.limits.end_tokens);
  EXPECT_EQ(back.limits.max_tokens, 17);
  EXPECT_TRUE(back.limits.ignore_eos);
  EXPECT_EQ(back.time_limit, turn.time_limit);
  EXPECT_EQ(back.logprobs, 3);
  EXPECT_TRUE(back.background);
  ASSERT_TRUE(back.sampling);
}

TEST(Records, refuse_an_enum_number_that_does_not_exist) {
  caf::actor_system_config config;
  configure(config);
  caf::actor_system system{config};
  caf::byte_buffer bytes;
  caf::binary_serializer out{system, bytes};
  Turn turn;
  turn.kind = static_cast<Turn::Kind>(9);
  ASSERT_TRUE(out.apply(turn));
  Turn back;
  caf::binary_deserializer in{system, bytes};
  EXPECT_FALSE(in.apply(back));
}

TEST(Records, carry_the_end_of_a_turn_and_its_error_codes) {
  TurnEnd end;
  end.reason = FinishReason::stop_string;
  end.text = "done";
  end.tokens = {4, 5};
  end.prefill = Seconds(0.25);
  const TurnEnd back = through_the_wire(end);
  EXPECT_EQ(back.reason, end.reason);
  EXPECT_EQ(back.text, end.text);
  EXPECT_EQ(back.tokens, end.tokens);
  EXPECT_EQ(back.prefill, end.prefill);
  const Error error{ErrorCode::overloaded, "a sentence"};
  const Error again = from_caf(to_caf(error));
  EXPECT_EQ(again.code, error.code);
  EXPECT_EQ(again.message, error.message);
}

TEST(Records, carry_a_trace_and_a_bill_whole) {
  SessionTrace trace;
  trace.phase = SessionPhase::parked;
  trace.age = std::chrono::nanoseconds(28'000'000'007);
  using Time = std::chrono::nanoseconds;
  trace.times = {Time(1), Time(2), Time(3), Time(4), Time(5), Time(6), Time(7)};
  trace.turns = 8;
  trace.prompt_tokens = 9, trace.cached_tokens = 10, trace.computed_tokens = 11, trace.answer_tokens = 12;
  trace.page_time = {13, 14};
  EXPECT_EQ(through_the_wire(trace), trace);
  HostInfo info;
  info.bill = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  EXPECT_EQ(through_the_wire(info).bill, info.bill);
  TurnEnd end;
  end.parked = Seconds(0.5);
  end.page_time = {1, 2};
  EXPECT_EQ(through_the_wire(end).parked, end.parked);
  EXPECT_EQ(through_the_wire(end).page_time, end.page_time);
}

TEST(Records, carry_in_an_error_when_to_try_again) {
  const Error error{ErrorCode::overloaded, "a sentence", std::chrono::seconds(17)};
  const Error again = from_caf(through_the_wire(to_caf(error)));
  EXPECT_EQ(again.code, error.code);
  EXPECT_EQ(again.message, error.message);
  EXPECT_EQ(again.retry_after, error.retry_after);
}

}  // namespace
}  // namespace troupe::test
