#include "actors/spawn.h"

#include <mutex>

#include "actors/supervisor.h"

namespace troupe {

void configure(caf::actor_system_config& config) {
  static std::once_flag once;  // CAF keeps one table of message types a process
  std::call_once(once, [] {
    caf::init_global_meta_objects<caf::id_block::troupe>();
    caf::core::init_global_meta_objects();
  });
  config.set("caf.scheduler.policy", "sharing");
  config.set("caf.scheduler.max-threads", 1);
}

HostActor spawn_host(caf::actor_system& system, std::unique_ptr<Engine> engine) {
  return spawn_supervisor(system, std::move(engine), {});
}

}  // namespace troupe
