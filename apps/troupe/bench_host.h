// A host in an actor system of its own, on an engine that nobody else uses meanwhile: what a measurement talks to.
#pragma once

#include <memory>

#include "actors/errors.h"
#include "actors/spawn.h"
#include "actors/supervisor.h"
#include "apps/troupe/bench_work.h"

namespace troupe::app {

class BenchHost {
 public:
  static constexpr auto kLimit = kLongestTurn;

  BenchHost(const std::shared_ptr<Engine>& engine, const Load& load) : system_(config_) {
    SupervisorOptions options;
    options.fuse = load.fuse;
    options.drafts = load.drafts;
    if (load.draft) options.draft = DraftEngine::of(load.draft);
    options.record = load.record;
    host_ = spawn_supervisor(system_, engine, options);
  }
  BenchHost(const BenchHost&) = delete;
  BenchHost& operator=(const BenchHost&) = delete;
  ~BenchHost() {
    caf::scoped_actor self{system_};
    self->send_exit(host_, caf::exit_reason::user_shutdown);
    self->wait_for(host_);
    host_ = nullptr;
  }

  caf::actor_system& system() { return system_; }
  HostActor host() const { return HostActor(host_); }

  Result<LaunchStats> stats() {
    Result<LaunchStats> launches = LaunchStats{};
    caf::scoped_actor self{system_};
    self->request(host_, kLimit, stats_atom_v)
        .receive([&](LaunchStats& stats) { launches = std::move(stats); },
                 [&](caf::error& error) { launches = from_caf(error); });
    return launches;
  }

 private:
  struct Config : caf::actor_system_config {
    Config() { configure(*this); }
  };
  Config config_;
  caf::actor_system system_;
  HostControl host_;
};

}  // namespace troupe::app
