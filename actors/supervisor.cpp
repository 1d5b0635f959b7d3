#include "actors/supervisor.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "actors/batcher.h"
#include "actors/errors.h"
#include "actors/idle_sessions.h"
#include "actors/launch_watch.h"
#include "actors/log.h"
#include "actors/restart_limit.h"
#include "actors/session.h"
#include "actors/store.h"
#include "actors/text_actor.h"

namespace troupe {
namespace {

// A session on the list of the living. Weak: the list must not keep a session alive that its owner has dropped.
struct Living {
  SessionId id;
  caf::weak_actor_ptr actor;
};

class SupervisorState {
 public:
  static constexpr const char* name = "troupe.supervisor";

  SupervisorState(HostControl::pointer self, std::shared_ptr<Engine> engine, SupervisorOptions options)
      : self_(self),
        engine_(std::move(engine)),
        options_(std::move(options)),
        prefixes_(std::make_shared<PrefixIndex>(engine_->pages(), most_prefix_pages())),
        admission_(engine_->pages(), prefixes_, options_.weights),
        watch_(options_.hang_limit, SupervisorOptions::kTick) {
    if (!options_.run) options_.run = [engine = engine_](std::span<Slice> batch) { engine->run(batch); };
    max_text_bytes_ = engine_->text().vocabulary->longest() * static_cast<std::size_t>(engine_->context());
    text_ = std::make_shared<TextSide>(engine_->text());
    engine_->pages()->use_clock([&clock = self_->clock()] { return clock.now(); });
  }
  SupervisorState(const SupervisorState&) = delete;
  SupervisorState& operator=(const SupervisorState&) = delete;
  ~SupervisorState() { engine_->pages()->use_clock({}); }  // the engine may outlive the actor system and its clock

  HostControl::behavior_type make_behavior() {
    self_->set_down_handler([this](caf::down_msg& down) { on_down(down); });
    self_->set_exit_handler([this](caf::exit_msg& message) { on_exit(message.reason); });
    self_->set_exception_handler([this](std::exception_ptr& fault) { return on_fault(fault); });
    start_batcher();
    start_text_actor();
    start_store();
    self_->delayed_send(self_, SupervisorOptions::kTick, tick_atom_v);
    return {
        [this](open_atom, OpenSession& opening) { return on_open(std::move(opening)); },
        [this](fork_atom, const SessionActor& origin, std::int64_t tokens) { return on_fork(origin, tokens); },
        [this](save_atom, const SessionActor& session, const std::string& path) { return on_save(session, path); },
        [this](load_atom, const std::string& path) { return on_load(path); },
        [this](describe_atom) { return describe(); },
        [this](stats_atom) { return on_stats(); },
        [this](drain_atom, caf::timespan limit) { return on_drain(limit); },
        [this](reserve_atom, PageRequest& request, caf::timespan limit) {
          return on_reserve(std::move(request), limit);
        },
        [this](published_atom, SessionId session, std::uint64_t turn) {
          admission_.published(session, turn);
          relieve();
        },
        [this](freed_atom, SessionId session, std::uint64_t turn) {
          if (const auto& sender = self_->current_sender()) idle_.add(caf::actor_cast<caf::actor_addr>(sender));
          admission_.leave(session, turn);
          relieve();
        },
        [this](plan_atom, PromptJob& job) { return self_->delegate(text_actor_, plan_atom_v, std::move(job)); },
        [this](sleep_atom, Handover& awake) { return self_->delegate(store_, sleep_atom_v, std::move(awake)); },
        [this](wake_atom, Handover& asleep) { return self_->delegate(store_, wake_atom_v, std::move(asleep)); },
        [this](tick_atom) { on_tick(); },
    };
  }

 private:
  std::int64_t most_prefix_pages() const {
    const std::uint64_t pages = options_.prefix_memory / engine_->pages()->layout().page_bytes();
    return static_cast<std::int64_t>(std::min(pages, static_cast<std::uint64_t>(engine_->pages()->total())));
  }

  // -- sessions --

  caf::result<SessionActor> on_open(OpenSession opening) {
    if (auto refused = refuse()) return to_caf(*refused);
    if (auto checked = opening.validate(engine_->shape().vocabulary, engine_->context()); !checked)
      return to_caf(checked.error());
    return spawn(Branch::open(std::move(opening), *text_->vocabulary, engine_->pages()));
  }

  caf::result<SessionActor> on_fork(const SessionActor& origin, std::int64_t tokens) {
    if (auto refused = refuse()) return to_caf(*refused);
    auto promise = self_->make_response_promise<SessionActor>();
    branch_off(origin, tokens, promise, [this, promise](Branch& branch) mutable { deliver(promise, branch); });
    return promise;
  }

  caf::result<bool> on_save(const SessionActor& session, const std::string& path) {
    auto promise = self_->make_response_promise<bool>();
    branch_off(session, -1, promise, [this, promise, path](Branch& branch) mutable {
      self_->request(store_, SupervisorOptions::kFileLimit, save_atom_v, std::move(branch), path)
          .then([promise](bool saved) mutable { promise.deliver(saved); },
                [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    });
    return promise;
  }

  caf::result<SessionActor> on_load(const std::string& path) {
    if (auto refused = refuse()) return to_caf(*refused);
    auto promise = self_->make_response_promise<SessionActor>();
    self_->request(store_, SupervisorOptions::kFileLimit, load_atom_v, path)
        .then([this, promise](Branch& branch) mutable { deliver(promise, branch); },
              [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    return promise;
  }

  // What `origin` has at a token, for `take`; `promise` gets the error if there is one.
  template <class Promise, class Take>
  void branch_off(const SessionActor& origin, std::int64_t tokens, Promise promise, Take take) {
    if (!sessions_.contains(origin.address())) {
      return promise.deliver(to_caf({ErrorCode::not_found, "the session is not, or no more, of this host"}));
    }
    self_->request(caf::actor_cast<SessionControl>(origin), std::chrono::minutes(2), fork_atom_v, tokens)
        .then(std::move(take), [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
  }

  void deliver(caf::typed_response_promise<SessionActor>& promise, Branch& branch) {
    if (auto refused = refuse()) return promise.deliver(to_caf(*refused));
    promise.deliver(spawn(std::move(branch)));
  }

  SessionHome home() const {
    return {text_,
            engine_->pages(),
            prefixes_,
            engine_->context(),
            engine_->shape().vocabulary,
            max_text_bytes_,
            caf::actor_cast<caf::weak_actor_ptr>(self_),
            batcher_,
            options_.sleep_room && options_.sleep_room->has_room(),
            options_.drafts,
            options_.record != nullptr || options_.draft.run != nullptr};
  }

  SessionActor spawn(Branch branch) {
    const SessionId id = ++last_session_;
    const bool has_pages = branch.cache->capacity() > 0;
    SessionControl session = spawn_session(self_->system(), home(), id, std::move(branch));
    self_->monitor(session);
    sessions_.emplace(session.address(), Living{id, caf::actor_cast<caf::weak_actor_ptr>(session)});
    if (has_pages) idle_.add(session.address());
    if (hangs_) self_->send(session, batcher_atom_v, to_caf(hang()));
    return SessionActor(session);
  }

  std::optional<Error> refuse() const {
    if (draining_) return Error{ErrorCode::shutting_down, "the host is draining and opens no more sessions"};
    if (failed_) return *failed_;
    if (static_cast<std::int64_t>(sessions_.size()) >= options_.max_sessions) {
      return Error{ErrorCode::overloaded,
                   std::to_string(sessions_.size()) + " sessions are open, the most this host keeps"};
    }
    return std::nullopt;
  }

  template <class... Ts>
  void tell_sessions(const Ts&... message) {
    for (auto& [address, living] : sessions_) {
      if (auto session = caf::actor_cast<SessionControl>(living.actor)) self_->send(session, message...);
    }
  }

  // -- pages --

  caf::result<PageGrant> on_reserve(PageRequest request, caf::timespan limit) {
    idle_.remove(caf::actor_cast<caf::actor_addr>(self_->current_sender()));
    auto promise = self_->make_response_promise<PageGrant>();
    admission_.push(std::move(request), self_->clock().now() + limit, [promise](Result<PageGrant> grant) mutable {
      if (grant) return promise.deliver(std::move(*grant));
      promise.deliver(to_caf(grant.error()));
    });
    relieve();
    return promise;
  }

  // To own pages is not to pin them: while turns wait, the session that has been idle longest is sent to sleep, one at
  // a time. What it had in full pages stays in the index as long as nobody needs it.
  void relieve() {
    while (admission_.short_of_pages() && !sending_to_sleep_) {
      if (idle_.empty()) {
        if (!admission_.reclaim()) return;
        admission_.serve();
        continue;
      }
      const auto living = sessions_.find(*idle_.take_longest());
      if (living == sessions_.end()) continue;
      const auto session = caf::actor_cast<SessionControl>(living->second.actor);
      if (!session) continue;
      sending_to_sleep_ = true;
      self_->request(session, std::chrono::seconds(30), sleep_atom_v)
          .then([this](bool) { on_asleep(); },
                [this](caf::error&) { on_asleep(); });  // a dead one's pages are free too
    }
  }

  void on_asleep() {
    sending_to_sleep_ = false;
    admission_.serve();
    relieve();
  }

  // -- the batcher and the text actor --

  void start_batcher() {
    launch_began_ = std::make_shared<LaunchClock>(0);
    const BatcherOptions batching{options_.run,    engine_->max_rows(), launch_began_,
                                  options_.fuse,   options_.linger,     options_.weights,
                                  options_.record, options_.draft,      options_.drafts};
    batcher_ = spawn_batcher(self_->system(), batching, options_.detached);
    self_->monitor(batcher_);
  }

  void start_text_actor() {
    text_actor_ = spawn_text_actor(self_->system(), text_, options_.detached);
    self_->monitor(text_actor_);
  }

  void start_store() {
    SnapshotHome home{engine_->fingerprint(),
                      text_->vocabulary,
                      engine_->pages(),
                      engine_->context(),
                      [prefixes = prefixes_](std::int64_t pages) { prefixes->evict(pages); },
                      options_.sleep_room};
    store_ = spawn_store(self_->system(), std::move(home), options_.detached);
    self_->monitor(store_);
  }

  void on_batcher_down(const caf::error& reason) {
    if (!restarts_.allow(self_->clock().now())) {
      return give_up(Error{ErrorCode::engine_failed, "the engine failed " + std::to_string(RestartLimit::kMost + 1) +
                                                         " times within " +
                                                         std::to_string(RestartLimit::kWindow.count()) +
                                                         " s; last: " + from_caf(reason).message});
    }
    log_warning("the batcher died (" + from_caf(reason).message + "); starting another");
    start_batcher();
    tell_sessions(batcher_atom_v, batcher_);
  }

  void give_up(Error error) {
    log_error(error.message);
    failed_ = std::move(error);
    tell_sessions(batcher_atom_v, to_caf(*failed_));
  }

  void on_down(const caf::down_msg& down) {
    if (down.source == batcher_.address()) return on_batcher_down(down.reason);
    if (down.source == text_actor_.address()) return start_text_actor();
    if (down.source == store_.address()) return start_store();
    if (const auto gone = sessions_.find(down.source); gone != sessions_.end()) {
      const SessionId session = gone->second.id;
      idle_.remove(gone->first);
      sessions_.erase(gone);
      admission_.leave(session);
      relieve();
    }
    if (sessions_.empty()) answer_drain(true);
  }

  static Error hang() { return {ErrorCode::engine_failed, "the launch in work does not end"}; }

  void watch_launch(TimePoint now) {
    const bool hangs = watch_.hangs(now, launch_began_->load());
    if (hangs == hangs_) return;
    hangs_ = hangs;
    if (hangs) {
      log_error("the launch in work does not end: its turns are failed");
      tell_sessions(batcher_atom_v, to_caf(hang()));
    } else if (!failed_) {
      tell_sessions(batcher_atom_v, batcher_);
    }
  }

  // -- the host as others see it --

  HostInfo describe() const {
    HostInfo info;
    info.model = engine_->shape().name;
    info.engine = engine_->describe();
    info.fingerprint = engine_->fingerprint();
    info.context = engine_->context();
    info.pages_total = engine_->pages()->total();
    info.pages_free = engine_->pages()->free();
    info.prefixes = prefixes_->counters();
    if (options_.sleep_room) info.sleepers = options_.sleep_room->counters();
    info.bill = engine_->pages()->bill();
    info.sessions = static_cast<std::int64_t>(sessions_.size());
    info.waiting = static_cast<std::int64_t>(admission_.waiting());
    info.batcher_restarts = restarts_.in_all();
    info.ready = !failed_ && !hangs_ && !draining_;
    return info;
  }

  caf::result<LaunchStats> on_stats() {
    auto promise = self_->make_response_promise<LaunchStats>();
    self_->request(batcher_, std::chrono::minutes(2), stats_atom_v)
        .then([promise](LaunchStats& stats) mutable { promise.deliver(std::move(stats)); },
              [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
    return promise;
  }

  caf::result<bool> on_drain(caf::timespan limit) {
    draining_ = true;
    if (sessions_.empty()) return true;
    tell_sessions(drain_atom_v);
    auto promise = self_->make_response_promise<bool>();
    drains_.emplace_back(self_->clock().now() + std::min<caf::timespan>(limit, Turn::kLongestLimit), promise);
    return promise;
  }

  void answer_drain(bool empty) {
    const auto now = self_->clock().now();
    std::erase_if(drains_, [&](auto& drain) {
      if (!empty && now < drain.first) return false;
      drain.second.deliver(empty);
      return true;
    });
  }

  void on_tick() {
    const auto now = self_->clock().now();
    admission_.drop_late(now);
    relieve();
    answer_drain(sessions_.empty());
    watch_launch(now);
    self_->delayed_send(self_, SupervisorOptions::kTick, tick_atom_v);
  }

  void on_exit(const caf::error& reason) {
    for (auto& [address, living] : sessions_) {
      if (auto session = caf::actor_cast<SessionControl>(living.actor)) self_->send_exit(session, reason);
    }
    self_->send_exit(batcher_, reason);
    self_->send_exit(text_actor_, reason);
    self_->send_exit(store_, reason);
    self_->quit(reason);
  }

  // No memory, or no thread, for something new: the house goes down in order.
  caf::error on_fault(const std::exception_ptr& fault) {
    const Error error = from_exception(fault);
    log_error("the host fails: " + error.message);
    on_exit(to_caf(error));
    return to_caf(error);
  }

  HostControl::pointer self_;
  std::shared_ptr<Engine> engine_;
  SupervisorOptions options_;
  std::shared_ptr<PrefixIndex> prefixes_;
  Admission admission_;
  std::shared_ptr<const TextSide> text_;
  std::size_t max_text_bytes_ = 0;

  std::unordered_map<caf::actor_addr, Living> sessions_;
  SessionId last_session_ = 0;
  IdleSessions idle_;
  bool sending_to_sleep_ = false;

  BatcherActor batcher_;
  TextActor text_actor_;
  StoreActor store_;
  std::shared_ptr<LaunchClock> launch_began_;
  RestartLimit restarts_;
  std::optional<Error> failed_;
  LaunchWatch watch_;
  bool hangs_ = false;

  bool draining_ = false;
  std::vector<std::pair<TimePoint, caf::typed_response_promise<bool>>> drains_;
};

}  // namespace

HostControl spawn_supervisor(caf::actor_system& system, std::shared_ptr<Engine> engine, SupervisorOptions options) {
  return system.spawn<HostControl::stateful_impl<SupervisorState>>(std::move(engine), std::move(options));
}

}  // namespace troupe
