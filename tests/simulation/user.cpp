#include "tests/simulation/user.h"

#include <utility>

#include "actors/errors.h"

namespace troupe::test {

User::User(caf::actor_system& system, HostControl host, std::shared_ptr<const Trouble> trouble, Ledger::Report report,
           Ledger::Report note)
    : host_(std::move(host)),
      trouble_(trouble),
      report_(report),
      note_(std::move(note)),
      ledger_(std::move(trouble), std::move(report)) {
  handle_ = system.spawn([this](SinkActor::pointer self) {
    self_ = self;
    return behavior();
  });
}

void User::post(std::function<void()> words) {
  if (gone_) return;
  caf::anon_send(caf::actor_cast<caf::actor>(handle_), caf::make_action([this, words = std::move(words)] {
                   if (!gone_) words();
                 }));
}

SinkActor::behavior_type User::behavior() {
  return {[this](const TextDelta& delta) {
    ledger_.came(delta);
    note_(std::to_string(delta.tokens.size()) + " tokens came");
    ++owed_;
    if (!stalls_) read_on();
  }};
}

void User::read_on() {
  stalls_ = false;
  if (!session_ || owed_ == 0) return;
  ledger_.credit_sent(owed_);
  self_->send(session_, credit_atom_v, std::exchange(owed_, 0));
}

void User::expect(const Error& error, bool excused) {
  if (!excused) report_("refused without a cause: " + error.message);
}

void User::open(const OpenSession& opening) {
  ++waiting_;
  self_->request(host_, caf::infinite, open_atom_v, opening)
      .then(
          [this](SessionActor& session) {
            --waiting_;
            note_("has session " + std::to_string(session.id()));
            adopt(std::move(session));
          },
          [this](const caf::error& error) {
            --waiting_;
            expect(from_caf(error), trouble_->draining || trouble_->engine_failed || trouble_->few_sessions);
          });
}

void User::say(Turn turn, bool streams, bool doomed) {
  if (!session_ || !settled_ || alone_ || (!streams && ledger_.open_turns() > 0)) return;
  ++waiting_;
  alone_ = !streams;
  const std::size_t number = ledger_.asked(turn, streams, self_->clock().now());
  if (doomed) ledger_.doom_last();
  const auto end = [this, number](TurnEnd& answer) {
    --waiting_;
    alone_ = false;
    note_("turn " + std::to_string(number) + " ends: " + name(answer.reason) + ", " +
          std::to_string(answer.tokens.size()) + " tokens");
    ledger_.ended(number, answer);
  };
  const auto fail = [this, number](const caf::error& error) {
    --waiting_;
    alone_ = false;
    note_("turn " + std::to_string(number) + " fails: " + from_caf(error).message);
    ledger_.failed(number, from_caf(error), self_->clock().now());
    if (!ledger_.sure()) read_transcript();
  };
  note_("asks turn " + std::to_string(number) + ": " + std::to_string(turn.tokens.size()) + " tokens after " +
        std::to_string(ledger_.history().size()) + ", for " + std::to_string(turn.limits.max_tokens));
  if (streams) {
    self_->request(session_, caf::infinite, say_atom_v, std::move(turn), SinkActor(self_)).then(end, fail);
  } else {
    self_->request(session_, caf::infinite, say_atom_v, std::move(turn)).then(end, fail);
  }
}

void User::stop() {
  if (!session_) return;
  ++waiting_;
  ledger_.stop_sent();
  self_->request(session_, caf::infinite, stop_atom_v)
      .then([this](SessionPhase) { --waiting_; }, [this](const caf::error&) { --waiting_; });
}

void User::close() {
  if (!session_) return;
  ++waiting_;
  ledger_.close_sent();
  self_->request(std::exchange(session_, nullptr), caf::infinite, close_atom_v)
      .then([this](SessionPhase) { --waiting_; }, [this](const caf::error&) { --waiting_; });
}

void User::kill_session() {
  if (!session_) return;
  ledger_.killed();
  self_->send_exit(std::exchange(session_, nullptr), caf::exit_reason::kill);
}

void User::learn_transcript(std::function<void(std::vector<TokenId>)> take) {
  if (!session_) return;
  ++waiting_;
  settled_ = false;
  self_->request(session_, caf::infinite, transcript_atom_v)
      .then(
          [this, take = std::move(take)](Transcript& transcript) {
            --waiting_;
            settled_ = true;
            take(std::move(transcript.tokens));
          },
          [this](const caf::error&) { --waiting_; });  // the session is no more
}

void User::read_transcript() {
  if (!settled_ || ledger_.open_turns() > 0) return;
  learn_transcript([this](std::vector<TokenId> tokens) { ledger_.learnt(std::move(tokens)); });
}

void User::fork(std::int64_t tokens, User& child) {
  if (!session_ || !settled_ || !ledger_.sure() || alone_) return;
  const std::vector<TokenId> base = ledger_.history();
  if (tokens > std::ssize(base)) tokens = std::ssize(base);
  ++waiting_;
  const auto adopted = [this, base, tokens, first = ledger_.first_open(), &child](SessionActor& session) {
    --waiting_;
    child.post([this, base, tokens, first, session, &child] {
      child.note_("has session " + std::to_string(session.id()) + ", a fork at " + std::to_string(tokens));
      child.adopt(session);
      if (tokens >= 0) return child.ledger_.begins_with({base.begin(), base.begin() + tokens});
      child.learn_transcript([this, base, first, &child](std::vector<TokenId> all) {
        child.ledger_.begins_as_fork_of(ledger_, base, first, std::move(all));
      });
    });
  };
  self_->request(host_, caf::infinite, fork_atom_v, session_, tokens).then(adopted, [this](const caf::error& error) {
    --waiting_;
    expect(from_caf(error), trouble_->draining || trouble_->engine_failed || trouble_->few_sessions || ledger_.over());
  });
}

void User::describe(std::function<void(const HostInfo&)> take) {
  ++waiting_;
  self_->request(host_, caf::infinite, describe_atom_v)
      .then(
          [this, take = std::move(take)](const HostInfo& info) {
            --waiting_;
            take(info);
          },
          [this](const caf::error& error) {
            --waiting_;
            expect(from_caf(error), false);
          });
}

void User::drain(caf::timespan limit) {
  ++waiting_;
  self_->request(host_, caf::infinite, drain_atom_v, limit)
      .then([this](bool) { --waiting_; },
            [this](const caf::error& error) {
              --waiting_;
              expect(from_caf(error), false);
            });
}

void User::vanish() {
  drop();
  self_->quit(caf::exit_reason::kill);
}

void User::leave() {
  drop();
  self_->quit();
}

void User::drop() {
  gone_ = true;
  session_ = nullptr;
  host_ = nullptr;
  handle_ = nullptr;
}

}  // namespace troupe::test
