#include "actors/reader.h"

#include <utility>

#include "actors/errors.h"

namespace troupe {
namespace {

class ReaderState {
 public:
  static constexpr const char* name = "troupe.reader";

  ReaderState(SinkActor::pointer self, const SessionActor& session, Turn turn, bool wants_text,
              std::shared_ptr<Mailslot> slot)
      : self_(self), slot_(std::move(slot)) {
    const auto finish = [this](TurnEnd& end) {
      slot_->finish(std::move(end));
      self_->quit();
    };
    const auto fail = [this](caf::error& error) {
      slot_->finish(from_caf(error));
      self_->quit();
    };
    // The session keeps the turn's own limit; this one only guards against a session that is lost.
    const auto limit = turn.time_limit + std::chrono::seconds(60);
    if (wants_text) {
      self_->request(session, limit, say_atom_v, std::move(turn), SinkActor(self_)).then(finish, fail);
    } else {
      self_->request(session, limit, say_atom_v, std::move(turn)).then(finish, fail);
    }
  }
  // The thread must not wait for ever, whatever ended this actor.
  ~ReaderState() { slot_->finish(Error{ErrorCode::shutting_down, "the host stopped during the turn"}); }

  SinkActor::behavior_type make_behavior() {
    return {[this](TextDelta& delta) { slot_->put(std::move(delta)); }};
  }

 private:
  SinkActor::pointer self_;
  std::shared_ptr<Mailslot> slot_;
};

}  // namespace

void Mailslot::put(TextDelta delta) {
  const std::lock_guard lock(mutex_);
  deltas_.push_back(std::move(delta));
  changed_.notify_one();
}

// The first end stands.
void Mailslot::finish(Result<TurnEnd> end) {
  const std::lock_guard lock(mutex_);
  if (end_) return;
  end_.emplace(std::move(end));
  changed_.notify_one();
}

bool Mailslot::next(std::chrono::steady_clock::time_point deadline, std::optional<TextDelta>& delta) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [this] { return !deltas_.empty() || end_; })) return false;
  delta.reset();
  if (!deltas_.empty()) {
    delta.emplace(std::move(deltas_.front()));
    deltas_.pop_front();
  }
  return true;
}

Result<TurnEnd> Mailslot::take_end() {
  const std::lock_guard lock(mutex_);
  return std::move(*end_);
}

SinkActor spawn_reader(caf::actor_system& system, SessionActor session, Turn turn, bool wants_text,
                       std::shared_ptr<Mailslot> slot) {
  return system.spawn<SinkActor::stateful_impl<ReaderState>>(std::move(session), std::move(turn), wants_text,
                                                             std::move(slot));
}

}  // namespace troupe
