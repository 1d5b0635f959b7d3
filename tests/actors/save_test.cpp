// Sessions outlive their host: saved at any moment, loaded by another, they go on as if nothing had been.
#include "actors/troupe.h"
#include "runtime/snapshot_file.h"
#include "tests/actors/actor_lab.h"

namespace troupe::test {
namespace {

Host open_host() {
  HostOptions options;
  options.engine = lab_options();
  auto host = Host::open(tiny_path(), options);
  if (!host) throw std::runtime_error(host.error().message);
  return std::move(*host);
}

TEST(Save, a_session_goes_on_in_another_host_with_the_same_bits_and_computes_nothing_again) {
  const ScratchFolder folder;
  const Turn first = token_turn(prompt(1, 60), 20), second = token_turn(prompt(2, 9), 12, 3);
  std::vector<TokenId> expected, history;
  {
    Host host = open_host();
    auto session = host.open_session();
    ASSERT_TRUE(session->take(first));
    const auto saved = session->save(folder.file("chat"));
    ASSERT_TRUE(saved) << saved.error().message;
    expected = session->take(second)->tokens;
    history = session->transcript()->tokens;
  }
  Host host = open_host();
  auto session = host.load_session(folder.file("chat"));
  ASSERT_TRUE(session) << session.error().message;
  const auto end = session->take(second);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->tokens, expected);
  EXPECT_EQ(end->cached_tokens, 79) << "all but the pending token";
  EXPECT_EQ(session->transcript()->tokens, history);
}

TEST(Save, in_mid_answer_the_file_has_what_was_said_so_far_and_the_turn_is_not_disturbed) {
  const ScratchFolder folder;
  ActorLab lab;
  const SessionActor session = lab.open();
  const Turn turn = token_turn(prompt(1, 40), 300);
  auto pending = lab.self()->request(session, std::chrono::seconds(60), say_atom_v, turn);
  while (lab.engine().counters().sampled < 20) std::this_thread::yield();
  const auto saved = lab.ask<bool>(lab.host(), save_atom_v, session, folder.file("chat"));
  ASSERT_TRUE(saved) << saved.error().message;
  std::vector<TokenId> whole = turn.tokens;
  pending.receive(
      [&](TurnEnd& end) {
        EXPECT_EQ(end.tokens, lab.solo(turn));
        whole.insert(whole.end(), end.tokens.begin(), end.tokens.end());
      },
      [](caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
  const auto loaded = lab.ask<SessionActor>(lab.host(), load_atom_v, folder.file("chat"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto so_far = lab.ask<Transcript>(*loaded, transcript_atom_v)->tokens;
  ASSERT_GT(so_far.size(), 50u);
  const auto rest = lab.say(*loaded, token_turn({}, static_cast<int>(whole.size() - so_far.size())));
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->tokens, (std::vector<TokenId>(whole.begin() + std::ssize(so_far), whole.end())));
  EXPECT_EQ(rest->computed_tokens, std::ssize(rest->tokens)) << "no prompt was computed";
}

TEST(Save, what_cannot_be_written_or_read_is_a_sentence_and_the_session_goes_on) {
  Host host = open_host();
  auto session = host.open_session();
  ASSERT_TRUE(session->take(token_turn(prompt(1, 10), 5)));
  const auto unwritten = session->save("/no/such/folder/chat");
  ASSERT_FALSE(unwritten);
  EXPECT_NE(unwritten.error().message.find("/no/such/folder"), std::string::npos) << unwritten.error().message;
  const auto missing = host.load_session("/no/such/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_FALSE(host.load_session(tiny_path())) << "a model is no session";
  EXPECT_TRUE(session->take(token_turn(prompt(1, 10), 5)));
}

TEST(Save, a_house_gets_its_pages_back_from_sessions_that_were_loaded) {
  const ScratchFolder folder;
  ActorLab lab;
  const std::int64_t all = lab.engine().pages()->total();
  const SessionActor session = lab.open();
  ASSERT_TRUE(lab.say(session, token_turn(prompt(1, 200), 10)));
  ASSERT_TRUE(lab.ask<bool>(lab.host(), save_atom_v, session, folder.file("chat")));
  for (int i = 0; i < 5; ++i) {
    const auto loaded = lab.ask<SessionActor>(lab.host(), load_atom_v, folder.file("chat"));
    ASSERT_TRUE(loaded);
    lab.self()->send(*loaded, close_atom_v);
  }
  lab.self()->send(session, close_atom_v);
  EXPECT_EQ(lab.free_pages_at_rest(), all);
}

// The checksum of a file says that it is what was written, not who wrote it.
TEST(Save, what_comes_from_a_file_is_found_by_nobody_else) {
  const ScratchFolder folder;
  ActorLab lab;
  const SessionActor session = lab.open();
  ASSERT_TRUE(lab.say(session, token_turn(prompt(9, 64), 2)));
  ASSERT_TRUE(lab.ask<bool>(lab.host(), save_atom_v, session, folder.file("good")));
  {
    const auto file = SnapshotFile::open(folder.file("good"));
    ASSERT_TRUE(file);
    std::string payload;
    ASSERT_TRUE(file->read_payload([&](std::string_view part) { payload += part; }));
    for (std::size_t i = 0; i + 64 < payload.size(); i += 64) std::swap(payload[i], payload[i + 32]);
    std::string header = file->header();
    header.replace(header.find("\"key\":\"\""), 8, "\"key\":\"victim\"");
    ASSERT_TRUE(write_snapshot_file(folder.file("bad"), header, payload.size(),
                                    [&](const WritePart& write) { write(payload); }));
  }
  const auto loaded = lab.ask<SessionActor>(lab.host(), load_atom_v, folder.file("bad"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_TRUE(lab.say(*loaded, token_turn(prompt(3, 3), 2)));
  const auto fork = lab.ask<SessionActor>(lab.host(), fork_atom_v, *loaded, std::int64_t{-1});
  ASSERT_TRUE(fork && lab.say(*fork, token_turn(prompt(4, 3), 2)));
  OpenSession victim;
  victim.key = "victim";
  const Turn turn = token_turn(prompt(9, 65), 12);
  const auto end = lab.say(lab.open(victim), turn);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->cached_tokens, 0);
  EXPECT_EQ(end->tokens, lab.solo(turn));
}

}  // namespace
}  // namespace troupe::test
