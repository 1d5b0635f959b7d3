// Talker: a session whose history is known, so that every turn is compared with what it must be.
#pragma once

#include "tests/actors/actor_lab.h"

namespace troupe::test {

struct Talker {
  SessionActor session;
  std::vector<TokenId> history{};
  std::int64_t cached = 0;  // in its last turn

  void turn(ActorLab& lab, int which, int tokens = 9) {
    const std::vector<TokenId> said = prompt(which, tokens);
    const std::int64_t before = std::ssize(history);
    history = joined(history, said);
    const auto end = lab.say(session, token_turn(said, 6));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->tokens, lab.solo(token_turn(history, 6)));
    cached = end->cached_tokens;
    EXPECT_LE(cached, before);
    history = joined(history, end->tokens);
  }
};

}  // namespace troupe::test
