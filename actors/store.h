// The store: saves sessions to files and loads them, on a thread of its own, so that nobody waits for a disk.
#pragma once

#include "actors/messages.h"
#include "runtime/snapshot.h"

namespace troupe {

StoreActor spawn_store(caf::actor_system& system, SnapshotHome home, bool detached);

}  // namespace troupe
