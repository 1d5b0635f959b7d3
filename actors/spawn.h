// For applications that speak CAF: spawn a host in an actor system of your own, and message it and its sessions.
//
//     caf::actor_system_config config;
//     troupe::configure(config);
//     caf::actor_system system{config};
//     auto engine = troupe::Engine::open("model.gguf", {});
//     troupe::HostActor host = troupe::spawn_host(system, std::move(*engine));
//     self->request(host, timeout, troupe::open_atom_v, troupe::OpenSession{}).then(...)
//
// actors/messages.h is the catalogue of messages. End the host with an exit message (user_shutdown); it takes its
// sessions along.
#pragma once

#include <memory>

#include "actors/messages.h"
#include "runtime/engine.h"

namespace troupe {

// Adds the message types, and a scheduler that leaves the cores to the engine: the "sharing" policy with one worker.
// (A stealing scheduler's idle workers spin; measured on two cores they cost a launch more than the messages do.)
// Call once, before the actor system is made. Values already set in `config` stay.
// Throws std::system_error when this process may not start the few threads that a host needs: an actor system whose
// thread is refused ends the whole program.
void configure(caf::actor_system_config& config);

HostActor spawn_host(caf::actor_system& system, std::unique_ptr<Engine> engine);

}  // namespace troupe
