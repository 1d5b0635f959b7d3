// The store: saves sessions to files, loads them, puts them to sleep and wakes them, on a thread of its own, so that
// nobody else waits for a disk. One thing at a time: who is to be woken waits while a session is being saved.
#pragma once

#include "actors/messages.h"
#include "runtime/snapshot.h"

namespace troupe {

// Without a room in `home` nobody may be sent here to sleep.
StoreActor spawn_store(caf::actor_system& system, SnapshotHome home, bool detached);

}  // namespace troupe
