#include "actors/spawn.h"

#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/supervisor.h"

namespace troupe {
namespace {

// CAF's worker, clock and printer, the batcher, the text actor, and some to spare.
constexpr int kThreadsOfAHost = 8;

void try_threads(int count) {
  std::latch all_started(1);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  const auto let_go = [&](std::latch* latch) { latch->count_down(); };
  const std::unique_ptr<std::latch, decltype(let_go)> at_end(&all_started, let_go);  // before they are joined
  for (int i = 0; i < count; ++i) threads.emplace_back([&] { all_started.wait(); });
}

}  // namespace

void configure(caf::actor_system_config& config) {
  try_threads(kThreadsOfAHost);
  static std::once_flag once;  // CAF keeps one table of message types a process
  std::call_once(once, [] {
    caf::init_global_meta_objects<caf::id_block::troupe>();
    caf::core::init_global_meta_objects();
  });
  config.set("caf.scheduler.policy", "sharing");
  config.set("caf.scheduler.max-threads", 1);
}

HostActor spawn_host(caf::actor_system& system, std::unique_ptr<Engine> engine) {
  SupervisorOptions options;
  options.sleep_room = *SleepRoom::open({}, *engine->pages());  // fails only with a folder
  return spawn_supervisor(system, std::move(engine), std::move(options));
}

}  // namespace troupe
