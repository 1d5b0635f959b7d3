#include "tests/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "actors/restart_limit.h"
#include "kernels/fault.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_model.h"

namespace troupe::test {
namespace {

constexpr std::chrono::seconds kHangLimit{1};
constexpr int kBoredTicks = 12;  // of the host's: 3 s in which somebody waits and nothing moves
constexpr std::int64_t kDraftPages = 8;
constexpr std::int64_t kMostEvents = 200'000;

std::string model_path() {
  static const ScratchFolder folder;
  static const std::string path = [] {
    TinyModel model = tiny_model(DType::q4_0);
    model.context = 2048;  // so that a text for the text actor is not refused before it is looked at
    return write_tiny_model(model, folder.file("simulated.gguf"));
  }();
  return path;
}

SupervisorOptions options_of(const Scenario& scenario, RunBatch run, DraftEngine draft) {
  SupervisorOptions options;
  options.run = std::move(run);
  options.hang_limit = kHangLimit;
  options.max_sessions = scenario.max_sessions;
  options.prefix_memory = scenario.prefix_memory;
  options.drafts = scenario.drafts;
  options.draft = std::move(draft);
  return options;
}

}  // namespace

std::shared_ptr<Engine> Engines::of(std::int64_t pages, std::int64_t max_rows) {
  auto& engine = open_[{pages, max_rows}];
  if (engine) return engine;
  EngineOptions options;
  options.threads = 1;
  options.kv_memory = static_cast<std::uint64_t>(pages) * 4096;
  options.max_rows = max_rows;
  options.poison_pages = true;
  auto opened = Engine::open(model_path(), options);
  if (!opened) throw std::runtime_error(opened.error().message);
  return engine = std::move(*opened);
}

Simulation::Simulation(std::uint64_t seed, Engines& engines, bool keeps_log)
    : seed_(seed),
      random_(seed),
      scenario_(random_),
      keeps_log_(keeps_log),
      engine_(engines.of(scenario_.pages, scenario_.max_rows)),
      model_(
          engine_->pages(), [this](std::span<Slice> batch) { seam(batch); },
          [this](const std::string& what) { report(what); }),
      draft_pages_(std::make_shared<PagePool>(allocate_host(kDraftPages * engine_->pages()->layout().page_bytes()),
                                              engine_->pages()->layout(), kDraftPages, true)),
      draft_model_(
          draft_pages_, [](std::span<Slice>) {}, [this](const std::string& what) { report("draft: " + what); }) {
  trouble_->pages = scenario_.pages;
  trouble_->few_sessions = scenario_.max_sessions < 1000;
  house_.emplace(engine_,
                 options_of(
                     scenario_, [this](std::span<Slice> batch) { launch(batch); }, draft_engine()),
                 scenario_.schedule, random_);
  note(scenario_.describe());
}

Simulation::~Simulation() {
  peace_ = true;
  thief_.reset();
  for (auto& user : users_) user->drop();
  house_.reset();
}

Life Simulation::run() {
  while (std::ssize(users_) < scenario_.users) {
    User& user = new_user();
    OpenSession opening;
    opening.key = std::to_string(random_.below(2));
    user.post([&user, opening = std::move(opening)] { user.open(opening); });
  }
  for (std::int64_t left = scenario_.events; left > 0 && sound();) {
    if (house_->idle() || random_.below(6) == 0) {
      --left;
      happen(scenario_.draw(random_));
    } else {
      move();
    }
  }
  settle();
  close_house();
  return std::move(life_);
}

void Simulation::report(const std::string& what) {
  note("BROKEN: " + what);
  if (sound()) life_.broken = what;
}

void Simulation::note(const std::string& what) {
  if (!keeps_log_) return;
  life_.log.push_back(std::to_string(house_->now().time_since_epoch().count() / 1000) + " us  " +
                      (launching_ ? "  in launch: " : "") + what);
}

void Simulation::move() {
  std::string who;
  if (!house_->run_one(keeps_log_ ? &who : nullptr)) return;
  if (++life_.events > kMostEvents) report("there is no end");
  const PageBill bill = engine_->pages()->bill();
  if (bill.total != bill.house + bill.living + bill.ended) report("the bills are not what the pages cost");
  if (const auto newest = house_->newest("troupe.text"); newest != text_actor_) {
    text_actor_ = newest;
    trouble_->text_actor_dead = false;
    ++trouble_->text_actors;
  }
  if (keeps_log_) note("moves: " + who);
}

User& Simulation::new_user() {
  const std::string name = "user " + std::to_string(users_.size());
  users_.push_back(std::make_unique<User>(
      house_->system(), house_->host(), trouble_, [this, name](const std::string& what) { report(name + ": " + what); },
      [this, name](const std::string& what) { note(name + " " + what); }));
  return *users_.back();
}

void Simulation::happen(Event event) {
  const auto number = static_cast<std::size_t>(random_.below(std::ssize(users_)));
  note(std::string(name(event)) + " (user " + std::to_string(number) + ")");
  if (event >= Event::take_pages || event == Event::pass_time || event == Event::rest) return trouble(event);
  speak(event, *users_[number], number);
}

void Simulation::speak(Event event, User& user, std::size_t number) {
  switch (event) {
    case Event::say:
      return say(user, scenario_.draw_turn(random_));
    case Event::say_nothing: {
      Turn turn = scenario_.draw_turn(random_);
      turn.tokens.clear();
      return user.post([&user, turn] {
        if (!user.ledger().history().empty()) user.say(turn, true);
      });
    }
    case Event::say_too_much: {
      Turn turn = scenario_.draw_turn(random_);
      turn.kind = Turn::Kind::text;
      turn.tokens.clear();
      turn.text = std::string(17'000, 'q');
      return user.post([&user, turn] { user.say(turn, true); });
    }
    case Event::stop:
      return user.post([&user] { user.stop(); });
    case Event::close:
      return user.post([&user] { user.close(); });
    case Event::kill_session:
      return user.post([&user] { user.kill_session(); });
    case Event::vanish:
      if (number > 0) user.post([&user] { user.vanish(); });
      return;
    case Event::stall:
      return user.post([&user] { user.stall(); });
    case Event::read_on:
      return user.post([&user] { user.read_on(); });
    case Event::read_transcript:
      return user.post([&user] { user.read_transcript(); });
    case Event::fork: {
      if (users_.size() >= 16) return;
      const std::int64_t tokens = random_.below(2) == 0 ? -1 : random_.below(120);
      User& child = new_user();
      return user.post([&user, &child, tokens] { user.fork(tokens, child); });
    }
    default:
      return;
  }
}

void Simulation::say(User& user, Turn turn) {
  const bool streams = random_.below(4) > 0;
  const bool doomed = scenario_.doom && random_.below(8) == 0;
  if (doomed) doomed_[turn.sampling->seed] = random_.below(6);
  user.post([&user, turn = std::move(turn), streams, doomed] { user.say(turn, streams, doomed); });
}

void Simulation::trouble(Event event) {
  const auto milliseconds = [this](std::int64_t most) { return std::chrono::milliseconds(random_.below(most)); };
  switch (event) {
    case Event::pass_time:
      return random_.below(4) == 0 ? house_->advance(milliseconds(60)) : house_->advance_to_next_timer();
    case Event::jump:
      return house_->advance(milliseconds(4000));
    case Event::rest:
      if (launching_) return;
      settle();
      return count_pages();
    case Event::take_pages:
      thief_.emplace(engine_->pages());
      return void(thief_->reserve(random_.below(engine_->pages()->free() + 1) * KvLayout::kPageTokens));
    case Event::give_pages:
      return thief_.reset();
    case Event::kill_batcher:
      if (deaths_ < 3 || scenario_.mayhem) {
        if (house_->kill("troupe.batcher")) batcher_dies();
      }
      return;
    case Event::kill_text_actor:
      trouble_->text_actor_dead |= house_->kill("troupe.text");
      return;
    case Event::drain:
      if (random_.below(3) > 0) return;
      trouble_->draining = true;
      return users_.front()->post([user = users_.front().get(), limit = milliseconds(2000)] { user->drain(limit); });
    default:
      return arm(event);
  }
}

void Simulation::batcher_dies() {
  if (++deaths_ > static_cast<int>(RestartLimit::kMost)) trouble_->engine_failed = true;
}

// What the next launches will meet.
void Simulation::arm(Event fault) {
  // Two that hit one batch are survived by running its steps one by one; a third would hit one of these.
  if (fault == Event::step_fault && !launching_) step_faults_ = static_cast<int>(1 + random_.below(2));
  if (fault == Event::device_fault && (deaths_ < 3 || scenario_.mayhem)) device_fault_ = true;
  if (fault == Event::hang && random_.below(4) == 0) hang_ = true;
}

void Simulation::launch(std::span<Slice> batch) {
  ++life_.launches;
  launching_ = true;
  const std::shared_ptr<void> at_end(nullptr, [this](void*) { launching_ = false; });
  model_.run(batch);
  for (const Slice& slice : batch) {
    life_.guesses += slice.drafts;
    life_.right_guesses += slice.right;
  }
}

// Every other life has a draft model.
DraftEngine Simulation::draft_engine() {
  if (seed_ % 2 == 0) return {};
  return {[this](std::span<Slice> batch) { draft(batch); }, draft_pages_, engine_->text().vocabulary,
          engine_->context(), engine_->max_rows()};
}

// The model itself, but for a slip and a fault now and then.
void Simulation::draft(std::span<Slice> batch) {
  if (++draft_launches_ % 40 == 0) throw StepFault("the draft fails");
  draft_model_.run(batch);
  if (draft_launches_ % 40 == 20) throw StepFault("the draft's work is lost");
  for (Slice& slice : batch) {
    if ((slice.position + slice.sampled.token) % 5 == 0) slice.sampled.token ^= 1;
  }
  house_->advance(std::chrono::microseconds(20));
}

// What happens beside a launch, and what a launch may meet.
void Simulation::seam(std::span<Slice> batch) {
  house_->advance(std::chrono::microseconds(random_.below(1500)));
  for (std::int64_t left = random_.below(5); left > 0 && sound(); --left) move();
  if (!peace_ && random_.below(12) == 0) happen(scenario_.draw(random_));
  if (std::exchange(hang_, false)) hang();
  for (const Slice& slice : batch) {
    const auto doomed = doomed_.find(slice.sampling->seed);
    if (doomed == doomed_.end() || doomed->second-- > 0) continue;
    step_faults_ = 0;
    throw StepFault("this step fails, whoever is beside it");
  }
  if (random_.below(2) == 0) return;
  if (step_faults_ > 0) {
    --step_faults_;
    note("a step fault");
    throw StepFault("some step fails");
  }
  if (std::exchange(device_fault_, false)) {
    note("a device fault");
    batcher_dies();
    throw DeviceFault("the device is lost");
  }
}

void Simulation::hang() {
  note("the launch hangs");
  trouble_->engine_failed = true;
  for (int tick = 0; tick < 8 && sound(); ++tick) {
    house_->advance(SupervisorOptions::kTick);
    for (int left = 40; left > 0 && sound() && !house_->idle(); --left) move();
  }
}

int Simulation::waiting() const {
  int all = 0;
  for (const auto& user : users_) all += user->waiting();
  return all;
}

// No more trouble: everything that was asked comes to its end.
void Simulation::settle() {
  peace_ = true;
  thief_.reset();
  step_faults_ = 0;
  device_fault_ = hang_ = false;
  for (auto& user : users_) user->post([user = user.get()] { user->read_on(); });
  int bored = 0;
  std::int64_t launches = life_.launches;
  while (sound()) {
    while (sound() && !house_->idle()) move();
    if (waiting() == 0 || !sound()) break;
    bored = std::exchange(launches, life_.launches) == life_.launches ? bored + 1 : 0;
    if (bored > kBoredTicks) report(std::to_string(waiting()) + " requests are open, and nothing moves");
    house_->advance_to_next_timer();
  }
  peace_ = false;
}

// At rest a session has the pages of its tokens at most, and one that its last page is still to be copied from, if a
// fork's turn was taken back before it got a token. What sessions do not have is the index's.
void Simulation::count_pages() {
  for (int i = 0; i < 8 && sound(); ++i) {  // a step that was withdrawn keeps its pages while the batcher lingers
    house_->advance_to_next_timer();
    settle();
  }
  if (!sound()) return;
  User& keeper = *users_.front();
  keeper.post([this, &keeper] {
    keeper.describe([this](const HostInfo& info) {
      std::int64_t sessions = 0;
      for (const auto& user : users_) {
        if (!user->has_session()) continue;
        const std::int64_t tokens = std::ssize(user->ledger().history());
        sessions += pages_for(tokens) + (tokens % KvLayout::kPageTokens > 0 ? 1 : 0);
      }
      const std::int64_t used = engine_->pages()->used();
      if (used <= sessions + info.prefixes.pages && used >= info.prefixes.pages) return;
      report(std::to_string(used) + " pages are used at rest; sessions have " + std::to_string(sessions) +
             ", the index has " + std::to_string(info.prefixes.pages));
    });
  });
  settle();
}

void Simulation::close_house() {
  for (auto& user : users_) user->post([user = user.get()] { user->close(); });
  settle();
  count_pages();
  for (auto& user : users_) {
    life_.turns += static_cast<std::int64_t>(user->ledger().turns());
    user->post([user = user.get()] { user->leave(); });
  }
  house_->end_host();
  while (sound() && !house_->idle()) move();
  if (!sound()) return;
  if (const auto used = engine_->pages()->used(); used > 0) report(std::to_string(used) + " pages are used at the end");
  if (engine_->pages()->bill().living != PageTime{}) report("somebody's account is open at the end");
  if (house_->actors() > 0) report(std::to_string(house_->actors()) + " actors are left at the end");
}

}  // namespace troupe::test
