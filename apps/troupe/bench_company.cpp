#include "apps/troupe/bench_company.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = Company::Kind;

constexpr std::int32_t kPrompt = 4;                    // tokens
constexpr std::size_t kLongest = 8;                    // tokens of a short turn
constexpr std::int32_t kReaderCredit = 2;              // deltas
constexpr std::uint64_t kPromptsFrom = 1'000'000'000;  // no number of the load's prompts

struct Member {
  SessionActor session;
  std::size_t turns = 0;   // begun
  std::size_t tokens = 0;  // of the turn in work, that its sink got
  std::size_t deltas = 0;  // of it
  bool settled = false;
};

// Keeps its sessions busy and is their sink, until it is told to stop.
class CompanyState {
 public:
  static constexpr const char* name = "troupe.bench.company";

  CompanyState(CompanyActor::pointer self, HostActor host, Company company, std::int64_t vocabulary,
               std::shared_ptr<std::promise<void>> ready, std::shared_ptr<std::promise<Result<CompanyResult>>> told)
      : self_(self),
        host_(std::move(host)),
        company_(company),
        vocabulary_(vocabulary),
        ready_(std::move(ready)),
        told_(std::move(told)),
        members_(static_cast<std::size_t>(company.sessions)) {}

  CompanyActor::behavior_type make_behavior() {
    for (std::size_t i = 0; i < members_.size(); ++i) open(i);
    return {[this](TextDelta& delta) { on_delta(delta); }, [this](stop_atom) { on_stop(); }};
  }

 private:
  void open(std::size_t i) {
    self_->request(host_, BenchHost::kLimit, open_atom_v, OpenSession{})
        .then(
            [this, i](SessionActor& session) {
              members_[i].session = std::move(session);
              say(i);
            },
            [this](caf::error& error) { fail(from_caf(error)); });
  }

  // Of a member's turn in tokens, until its end or the cancel.
  std::size_t length(std::size_t i) const { return 1 + (i + members_[i].turns) % kLongest; }

  Turn turn(std::size_t i) const {
    const std::uint64_t number = kPromptsFrom + members_[i].turns * members_.size() + i;
    const bool is_short = company_.kind == Kind::short_turns;
    const auto most = is_short ? static_cast<std::int32_t>(length(i)) : Company::kTokens - kPrompt;
    Turn turn = token_turn(tokens_of(number, kPrompt, vocabulary_), most);
    if (company_.kind == Kind::stalled_readers) turn.credit = kReaderCredit;
    return turn;
  }

  void say(std::size_t i) {
    members_[i].tokens = members_[i].deltas = 0;
    self_->request(members_[i].session, BenchHost::kLimit, say_atom_v, turn(i), caf::actor_cast<SinkActor>(self_))
        .then([this, i](TurnEnd& end) { on_end(i, end); }, [this](caf::error& error) { fail(from_caf(error)); });
  }

  void on_delta(const TextDelta& delta) {
    const auto sender = caf::actor_cast<SessionActor>(self_->current_sender());
    const auto i = static_cast<std::size_t>(std::ranges::find(members_, sender, &Member::session) - members_.begin());
    Member& member = members_[i];
    const std::size_t before = std::exchange(member.tokens, member.tokens + delta.tokens.size());
    ++member.deltas;
    if (company_.kind == Kind::stalled_readers) {
      if (member.deltas == kReaderCredit) settle(member);
      return;
    }
    self_->send(sender, credit_atom_v, std::int32_t{1});
    if (company_.kind == Kind::cancelled_turns && before < length(i) && member.tokens >= length(i)) {
      caf::anon_send(sender, stop_atom_v);
    }
  }

  void on_end(std::size_t i, const TurnEnd& end) {
    if (company_.kind == Kind::stalled_readers) return fail(went_on(members_[i]));
    ++result_.turns;
    if (end.reason == FinishReason::cancelled) ++result_.cancels;
    Member& member = members_[i];
    caf::anon_send(member.session, close_atom_v);
    ++member.turns;
    settle(member);
    open(i);
  }

  void settle(Member& member) {
    if (std::exchange(member.settled, true)) return;
    if (++settled_ == members_.size() && ready_) std::exchange(ready_, nullptr)->set_value();
  }

  void on_stop() {
    if (company_.kind != Kind::stalled_readers || error_) return finish();
    for (Member& member : members_) {
      self_->request(member.session, BenchHost::kLimit, trace_atom_v)
          .then([this, &member](SessionTrace& trace) { on_trace(member, trace); },
                [this](caf::error& error) {
                  fail(from_caf(error));
                  finish();
                });
    }
  }

  void on_trace(const Member& member, const SessionTrace& trace) {
    const bool parked = trace.phase == SessionPhase::parked && member.deltas == kReaderCredit;
    if (!parked && !error_) error_ = went_on(member);
    ++result_.parked;
    if (error_ || result_.parked == company_.sessions) finish();
  }

  static Error went_on(const Member& member) {
    return {ErrorCode::engine_failed, "a session whose sink took " + std::to_string(kReaderCredit) +
                                          " pieces of text and no more does not stand still after " +
                                          std::to_string(member.deltas) + ": please report this"};
  }

  // The load is not kept waiting; it hears of it at the end.
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
    if (ready_) std::exchange(ready_, nullptr)->set_value();
  }

  void finish() {
    if (!told_) return;
    result_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    for (Member& member : members_) {
      if (member.session) caf::anon_send(member.session, close_atom_v);
    }
    std::exchange(told_, nullptr)->set_value(error_ ? Result<CompanyResult>(*error_) : Result<CompanyResult>(result_));
    self_->quit();
  }

  CompanyActor::pointer self_;
  HostActor host_;
  Company company_;
  std::int64_t vocabulary_;
  std::shared_ptr<std::promise<void>> ready_;
  std::shared_ptr<std::promise<Result<CompanyResult>>> told_;
  std::vector<Member> members_;
  std::size_t settled_ = 0;
  CompanyResult result_;
  std::optional<Error> error_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace

BenchCompany::BenchCompany(BenchHost& host, const Company& company, std::int64_t vocabulary) {
  if (company.sessions == 0) return;
  auto ready = std::make_shared<std::promise<void>>();
  auto all_there = ready->get_future();
  auto told = std::make_shared<std::promise<Result<CompanyResult>>>();
  told_ = told->get_future();
  actor_ = host.system().spawn<CompanyActor::stateful_impl<CompanyState>>(host.host(), company, vocabulary,
                                                                          std::move(ready), std::move(told));
  all_there.wait();
}

BenchCompany::~BenchCompany() {
  if (actor_) caf::anon_send(actor_, stop_atom_v);
}

Result<CompanyResult> BenchCompany::leave() {
  if (!actor_) return CompanyResult{};
  caf::anon_send(actor_, stop_atom_v);
  return told_.get();
}

}  // namespace troupe::app
