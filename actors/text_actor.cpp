#include "actors/text_actor.h"

#include <utility>

#include "actors/errors.h"

namespace troupe {
namespace {

class TextActorState {
 public:
  static constexpr const char* name = "troupe.text";

  TextActorState(TextActor::pointer, std::shared_ptr<const TextSide> text) : text_(std::move(text)) {}

  TextActor::behavior_type make_behavior() {
    return {[this](plan_atom, const PromptJob& job) -> caf::result<PromptPlan> {
      auto plan = plan_prompt(*text_, job);
      if (!plan) return to_caf(plan.error());
      return std::move(*plan);
    }};
  }

 private:
  std::shared_ptr<const TextSide> text_;
};

}  // namespace

TextActor spawn_text_actor(caf::actor_system& system, std::shared_ptr<const TextSide> text, bool detached) {
  using Impl = TextActor::stateful_impl<TextActorState>;
  if (detached) return system.spawn<Impl, caf::detached>(std::move(text));
  return system.spawn<Impl>(std::move(text));
}

}  // namespace troupe
