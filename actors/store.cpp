#include "actors/store.h"

#include <utility>

#include "actors/errors.h"
#include "actors/log.h"

namespace troupe {
namespace {

class StoreState {
 public:
  static constexpr const char* name = "troupe.store";

  StoreState(StoreActor::pointer, SnapshotHome home) : home_(std::move(home)) {}

  StoreActor::behavior_type make_behavior() {
    return {
        [this](save_atom, const Branch& branch, const std::string& path) { return on_save(branch, path); },
        [this](load_atom, const std::string& path) { return on_load(path); },
        [this](sleep_atom, Handover& awake) { return on_sleep(std::move(awake)); },
        [this](wake_atom, Handover& asleep) { return on_wake(std::move(asleep)); },
    };
  }

 private:
  caf::result<bool> on_save(const Branch& branch, const std::string& path) {
    auto saved = save_snapshot(path, home_, branch.settings, *branch.conversation, *branch.cache);
    if (!saved) return to_caf(saved.error());
    return true;
  }

  caf::result<Branch> on_load(const std::string& path) {
    auto loaded = load_snapshot(path, home_);
    if (!loaded) return to_caf(loaded.error());
    return Branch{std::move(loaded->settings), std::make_shared<const Conversation>(std::move(loaded->conversation)),
                  std::make_shared<KvCache>(std::move(loaded->cache))};
  }

  // Whoever hears of the copy finds the pages free: the fork goes before the answer.
  caf::result<Asleep> on_sleep(Handover awake) {
    auto copy = home_.sleep_room->put(*awake.cache);
    awake.cache.reset();
    if (const auto fault = home_.sleep_room->take_fault())
      log_warning(fault->message + "; a sleeping session was given up");
    if (copy) return Asleep{std::move(*copy)};
    if (copy.error().code == ErrorCode::io) log_warning(copy.error().message);
    return to_caf(copy.error());
  }

  caf::result<Handover> on_wake(Handover asleep) {
    if (const auto woken = home_.sleep_room->wake(*asleep.cache); !woken) {
      if (woken.error().code == ErrorCode::io) log_warning(woken.error().message + "; its tokens are computed again");
      asleep.cache->forget_sleeper();
    }
    return asleep;
  }

  SnapshotHome home_;
};

}  // namespace

StoreActor spawn_store(caf::actor_system& system, SnapshotHome home, bool detached) {
  using Impl = StoreActor::stateful_impl<StoreState>;
  if (detached) return system.spawn<Impl, caf::detached>(std::move(home));
  return system.spawn<Impl>(std::move(home));
}

}  // namespace troupe
