#include "tests/simulation/house.h"

#include <algorithm>
#include <utility>

#include "actors/spawn.h"

namespace troupe::test {
namespace {

std::unique_ptr<caf::actor_system_config> testing_config() {
  static const bool types_known = [] {
    caf::actor_system_config first;
    configure(first);
    return true;
  }();
  auto config = std::make_unique<caf::actor_system_config>();
  if (types_known) config->set("caf.scheduler.policy", "testing");
  return config;
}

caf::scheduled_actor* actor_of(caf::resumable* job) {
  return dynamic_cast<caf::scheduled_actor*>(job);
}

// And what it will take from its mailbox.
std::string name_of(caf::scheduled_actor& actor) {
  std::string name = std::string(actor.name()) + " " + std::to_string(actor.id());
  const caf::mailbox_element* next = actor.peek_at_next_mailbox_element();
  if (next == nullptr) return name;
  name += next->mid.is_response() ? " <- answer:" : " <-";
  for (std::size_t i = 0; i < next->payload.size(); ++i) {
    const auto type = caf::query_type_name(next->payload.type_at(i));
    name += " " + std::string(type.data(), type.size());
  }
  if (next->sender) name += " of " + std::to_string(next->sender->id());
  return name;
}

}  // namespace

House::House(std::shared_ptr<Engine> engine, SupervisorOptions options, Schedule schedule, Random& random)
    : random_(random),
      schedule_(schedule),
      config_(testing_config()),
      system_(std::make_unique<caf::actor_system>(*config_)) {
  options.detached = false;
  host_ = spawn_supervisor(*system_, std::move(engine), std::move(options));
  starved_ = host_.id() + static_cast<std::uint64_t>(random_.below(12));
}

House::~House() {
  if (actors() > 0) {
    system_->await_actors_before_shutdown(false);
    end_host();
    for (int i = 0; i < 100'000 && run_one(); ++i) {
    }
  }
  scheduler().clock().schedule.clear();  // else the system runs until no timer is left, and a host always has one
}

std::size_t House::choose() {
  const auto& jobs = scheduler().jobs;
  const auto any = static_cast<std::size_t>(random_.below(std::ssize(jobs)));
  if (random_.below(8) == 0) return any;
  switch (schedule_) {
    case Schedule::uniform:
      return any;
    case Schedule::in_order:
      return 0;
    case Schedule::newest:
      return jobs.size() - 1;
    case Schedule::starving:
      break;
  }
  const auto* actor = actor_of(jobs[any]);
  return actor != nullptr && actor->id() == starved_ ? (any + 1) % jobs.size() : any;
}

bool House::run_one(std::string* who) {
  auto& jobs = scheduler().jobs;
  if (jobs.empty()) return false;
  const auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(choose());
  std::rotate(jobs.begin(), chosen, chosen + 1);
  if (auto* actor = actor_of(jobs.front())) {
    seen_[actor->name()] = actor->ctrl();
    if (who != nullptr) *who = name_of(*actor);
  }
  scheduler().try_run_once();
  return true;
}

void House::advance_to_next_timer() {
  auto& timers = scheduler().clock().schedule;
  // The false clock keeps a timer that was called off, and with it the actor that set it, until its time comes.
  std::erase_if(timers, [](const auto& timer) { return timer.second.f.disposed(); });
  const caf::timespan tick = SupervisorOptions::kTick;
  advance(timers.empty() ? tick : std::clamp<caf::timespan>(timers.begin()->first - now(), caf::timespan(0), tick));
}

bool House::kill(const std::string& name) {
  const auto found = seen_.find(name);
  const auto actor = found == seen_.end() ? nullptr : found->second.lock();
  if (!actor) return false;
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  return true;
}

caf::actor_id House::newest(const std::string& name) const {
  const auto found = seen_.find(name);
  return found == seen_.end() ? 0 : found->second->id();
}

void House::end_host() {
  if (!host_) return;
  caf::anon_send_exit(host_, caf::exit_reason::user_shutdown);
  host_ = nullptr;
}

}  // namespace troupe::test
