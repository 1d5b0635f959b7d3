// User: one who holds a session: an actor that asks, reads, stalls, stops, forks and closes, and enters every answer in
// its ledger.
//
// Everything but post() is for inside the actor: user->post([=] { user->stop(); }). So a user's words, too, are only
// said when the schedule comes to them. A user outlives its actor.
#pragma once

#include <caf/all.hpp>
#include <functional>
#include <memory>

#include "actors/messages.h"
#include "tests/simulation/ledger.h"

namespace troupe::test {

class User {
 public:
  User(caf::actor_system& system, HostControl host, std::shared_ptr<const Trouble> trouble, Ledger::Report report,
       Ledger::Report note);
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  void post(std::function<void()> words);

  void open(const OpenSession& opening);
  // Not said while it would not be known what the answer must be.
  void say(Turn turn, bool streams, bool doomed = false);
  void stop();
  void close();
  void kill_session();
  // `child`, who has no session yet, gets a fork with the first `tokens` tokens, or all (-1).
  void fork(std::int64_t tokens, User& child);
  void read_transcript();
  void describe(std::function<void(const HostInfo&)> take);
  void drain(caf::timespan limit);
  // A reader that stalls gives no credit.
  void stall() { stalls_ = true; }
  void read_on();
  // The reader vanishes in the middle of everything.
  void vanish();
  // Nothing more is wanted; the session goes when its last handle goes.
  void leave();
  // From outside: lets go of everything, whatever the actor may still wait for.
  void drop();

  Ledger& ledger() { return ledger_; }
  bool has_session() const { return static_cast<bool>(session_); }
  bool gone() const { return gone_; }
  // Requests that have no answer yet: each is answered once, whatever happens.
  int waiting() const { return gone_ ? 0 : waiting_; }

 private:
  SinkActor::behavior_type behavior();
  void adopt(SessionActor session) { session_ = std::move(session); }
  void learn_transcript(std::function<void(std::vector<TokenId>)> take);
  void expect(const Error& error, bool excused);

  SinkActor::pointer self_ = nullptr;
  SinkActor handle_;
  HostControl host_;
  std::shared_ptr<const Trouble> trouble_;
  Ledger::Report report_, note_;
  Ledger ledger_;
  SessionActor session_;
  bool settled_ = true;  // its history is known, or will be without asking
  bool alone_ = false;   // a turn is open behind which none may stand
  bool stalls_ = false;
  bool gone_ = false;
  int waiting_ = 0;
  std::int32_t owed_ = 0;  // credit kept back
};

}  // namespace troupe::test
