#include "actors/store.h"

#include <utility>

#include "actors/errors.h"

namespace troupe {
namespace {

class StoreState {
 public:
  static constexpr const char* name = "troupe.store";

  StoreState(StoreActor::pointer, SnapshotHome home) : home_(std::move(home)) {}

  StoreActor::behavior_type make_behavior() {
    return {[this](save_atom, const Branch& branch, const std::string& path) -> caf::result<bool> {
              auto saved = save_snapshot(path, home_, branch.key, branch.sampling, *branch.conversation, *branch.cache);
              if (!saved) return to_caf(saved.error());
              return true;
            },
            [this](load_atom, const std::string& path) -> caf::result<Branch> {
              auto loaded = load_snapshot(path, home_);
              if (!loaded) return to_caf(loaded.error());
              return Branch{std::move(loaded->key), std::move(loaded->sampling),
                            std::make_shared<const Conversation>(std::move(loaded->conversation)),
                            std::make_shared<KvCache>(std::move(loaded->cache))};
            }};
  }

 private:
  SnapshotHome home_;
};

}  // namespace

StoreActor spawn_store(caf::actor_system& system, SnapshotHome home, bool detached) {
  using Impl = StoreActor::stateful_impl<StoreState>;
  if (detached) return system.spawn<Impl, caf::detached>(std::move(home));
  return system.spawn<Impl>(std::move(home));
}

}  // namespace troupe
