// Who may say what to whom: every message and every actor handle of the house.
//
// The records are plain structs (actors/records.h). Those with `inspect` (actors/wire.h) may cross the wire to another
// node; Step, StepTokens, PageRequest, PageGrant, Handover, Asleep, Branch and the prompt jobs hold memory of this
// process and are not serialisable, by type.
#pragma once

#include <caf/all.hpp>
#include <memory>

#include "actors/branch.h"
#include "actors/records.h"
#include "actors/wire.h"
#include "runtime/admission.h"
#include "runtime/kv/sleep_room.h"
#include "runtime/prompt_plan.h"
#include "runtime/step_queue.h"

namespace troupe {

struct open_atom;
struct describe_atom;
struct stats_atom;
struct drain_atom;
struct say_atom;
struct credit_atom;
struct stop_atom;
struct transcript_atom;
struct trace_atom;
struct close_atom;
struct step_atom;
struct leave_atom;
struct launch_atom;
struct reserve_atom;
struct published_atom;
struct fork_atom;
struct sleep_atom;
struct wake_atom;
struct save_atom;
struct load_atom;
struct freed_atom;
struct tick_atom;
struct batcher_atom;
struct plan_atom;

// Takes a session's text. Every TextDelta costs one credit; the sink gives it back with (credit_atom, n) when it has
// really passed the text on, so that a reader that stops parks its session instead of filling memory.
using SinkActor = caf::typed_actor<caf::result<void>(TextDelta)>;

// One conversation. The answer to `say` is the full stop of the turn: it comes after the last TextDelta was sent.
// A second `say` waits (4 at most, then `busy`). `stop` cancels the turn in work; `close` ends the session, and what
// waits is answered `cancelled`: both answer with the phase that they met. `trace` is answered at once, in mid-turn
// too.
using SessionActor = caf::typed_actor<caf::result<TurnEnd>(say_atom, Turn),             //
                                      caf::result<TurnEnd>(say_atom, Turn, SinkActor),  //
                                      caf::result<void>(credit_atom, std::int32_t),     //
                                      caf::result<SessionPhase>(stop_atom),             //
                                      caf::result<Transcript>(transcript_atom),         //
                                      caf::result<SessionTrace>(trace_atom),            //
                                      caf::result<SessionPhase>(close_atom)>;

// Fuses everyone's steps into launches. In this process only.
using BatcherActor = caf::typed_actor<caf::result<StepTokens>(step_atom, Step),  //
                                      caf::result<void>(leave_atom, SessionId),  //
                                      caf::result<LaunchStats>(stats_atom),      //
                                      caf::result<void>(launch_atom, std::uint64_t)>;

// Renders and tokenizes long prompts, so that no scheduler thread is held by one.
using TextActor = caf::typed_actor<caf::result<PromptPlan>(plan_atom, PromptJob)>;

// A cache on its way to the store or back, for one taker; and the store's copy of one.
struct Handover {
  std::shared_ptr<KvCache> cache;
};
struct Asleep {
  std::shared_ptr<const SleepingKv> kv;
};

// Sessions to files and back (runtime/snapshot.h), and those that sleep (runtime/kv/sleep_room.h). sleep: a copy of the
// cache's tokens, an error where there is no room. wake: the cache, awake; what was lost meanwhile is missing in it.
using StoreActor = caf::typed_actor<caf::result<bool>(save_atom, Branch, std::string),  //
                                    caf::result<Branch>(load_atom, std::string),        //
                                    caf::result<Asleep>(sleep_atom, Handover),          //
                                    caf::result<Handover>(wake_atom, Handover)>;

// What opens sessions. fork: a new session with the first so many tokens of another (-1: all that it has), in the
// middle of its turn too; it copies no page. save: what such a fork would have, into a file of the host's machine;
// load: a session that goes on from one, in another process too. drain: opens and new turns are refused, idle sessions
// go at once, the others when their turns have ended; true when the last has gone, false at the deadline.
using HostActor = caf::typed_actor<caf::result<SessionActor>(open_atom, OpenSession),                 //
                                   caf::result<HostInfo>(describe_atom),                              //
                                   caf::result<SessionActor>(fork_atom, SessionActor, std::int64_t),  //
                                   caf::result<bool>(save_atom, SessionActor, std::string),           //
                                   caf::result<SessionActor>(load_atom, std::string),                 //
                                   caf::result<LaunchStats>(stats_atom),                              //
                                   caf::result<bool>(drain_atom, caf::timespan)>;

// The host as its own sessions see it: pages for a turn (answered when they are there, or by an error); word that a
// session's prompt is computed and its pages can be found; and word that its turn is over: its pages were given back,
// and it waits for none any more. plan, sleep and wake go on to the text actor and to the store that live now.
using HostControl = HostActor::extend<caf::result<PageGrant>(reserve_atom, PageRequest, caf::timespan),  //
                                      caf::result<void>(published_atom, SessionId, std::uint64_t),       //
                                      caf::result<void>(freed_atom, SessionId, std::uint64_t),           //
                                      caf::result<PromptPlan>(plan_atom, PromptJob),                     //
                                      caf::result<Asleep>(sleep_atom, Handover),                         //
                                      caf::result<Handover>(wake_atom, Handover),                        //
                                      caf::result<void>(tick_atom)>;

// A session as its host sees it: the batcher to send steps to from now on, or why there will be none; and word that the
// host drains: the turn in work and those in line end in peace, no more are taken, and then the session goes. sleep: an
// idle session gives its pages back (true if it did); its next turn finds, wakes or computes what was in them.
using SessionControl = SessionActor::extend<caf::result<void>(batcher_atom, BatcherActor),  //
                                            caf::result<void>(batcher_atom, caf::error),    //
                                            caf::result<Branch>(fork_atom, std::int64_t),   //
                                            caf::result<bool>(sleep_atom),                  //
                                            caf::result<void>(tick_atom, std::uint64_t),    //
                                            caf::result<void>(drain_atom)>;

}  // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id + 200)

CAF_ADD_TYPE_ID(troupe, (troupe::ErrorCode))
CAF_ADD_TYPE_ID(troupe, (troupe::SessionPhase))
CAF_ADD_TYPE_ID(troupe, (troupe::OpenSession))
CAF_ADD_TYPE_ID(troupe, (troupe::Turn))
CAF_ADD_TYPE_ID(troupe, (troupe::TextDelta))
CAF_ADD_TYPE_ID(troupe, (troupe::TurnEnd))
CAF_ADD_TYPE_ID(troupe, (troupe::Transcript))
CAF_ADD_TYPE_ID(troupe, (troupe::SessionTrace))
CAF_ADD_TYPE_ID(troupe, (troupe::HostInfo))
CAF_ADD_TYPE_ID(troupe, (troupe::LaunchStats))
CAF_ADD_TYPE_ID(troupe, (troupe::Step))
CAF_ADD_TYPE_ID(troupe, (troupe::Sampled))
CAF_ADD_TYPE_ID(troupe, (troupe::StepTokens))
CAF_ADD_TYPE_ID(troupe, (troupe::PageRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::PageGrant))
CAF_ADD_TYPE_ID(troupe, (troupe::Handover))
CAF_ADD_TYPE_ID(troupe, (troupe::Asleep))
CAF_ADD_TYPE_ID(troupe, (troupe::Branch))
CAF_ADD_TYPE_ID(troupe, (troupe::PromptJob))
CAF_ADD_TYPE_ID(troupe, (troupe::PromptPlan))
CAF_ADD_TYPE_ID(troupe, (troupe::SinkActor))
CAF_ADD_TYPE_ID(troupe, (troupe::SessionActor))
CAF_ADD_TYPE_ID(troupe, (troupe::BatcherActor))

CAF_ADD_ATOM(troupe, troupe, open_atom)
CAF_ADD_ATOM(troupe, troupe, describe_atom)
CAF_ADD_ATOM(troupe, troupe, stats_atom)
CAF_ADD_ATOM(troupe, troupe, drain_atom)
CAF_ADD_ATOM(troupe, troupe, say_atom)
CAF_ADD_ATOM(troupe, troupe, credit_atom)
CAF_ADD_ATOM(troupe, troupe, stop_atom)
CAF_ADD_ATOM(troupe, troupe, transcript_atom)
CAF_ADD_ATOM(troupe, troupe, trace_atom)
CAF_ADD_ATOM(troupe, troupe, close_atom)
CAF_ADD_ATOM(troupe, troupe, step_atom)
CAF_ADD_ATOM(troupe, troupe, leave_atom)
CAF_ADD_ATOM(troupe, troupe, launch_atom)
CAF_ADD_ATOM(troupe, troupe, reserve_atom)
CAF_ADD_ATOM(troupe, troupe, published_atom)
CAF_ADD_ATOM(troupe, troupe, fork_atom)
CAF_ADD_ATOM(troupe, troupe, sleep_atom)
CAF_ADD_ATOM(troupe, troupe, wake_atom)
CAF_ADD_ATOM(troupe, troupe, save_atom)
CAF_ADD_ATOM(troupe, troupe, load_atom)
CAF_ADD_ATOM(troupe, troupe, freed_atom)
CAF_ADD_ATOM(troupe, troupe, tick_atom)
CAF_ADD_ATOM(troupe, troupe, batcher_atom)
CAF_ADD_ATOM(troupe, troupe, plan_atom)

CAF_END_TYPE_ID_BLOCK(troupe)

CAF_ERROR_CODE_ENUM(troupe::ErrorCode)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StepTokens)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::PageRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::PageGrant)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Handover)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Asleep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Branch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::PromptJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::PromptPlan)
