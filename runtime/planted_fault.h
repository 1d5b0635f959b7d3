// Faults that are planted in the house's own code, one at a time, to see whether its tests would find them. They exist
// in the test program that is compiled with TROUPE_PLANTED_FAULTS only; everywhere else planted() is false at compile
// time.
#pragma once

#include <cstdint>

namespace troupe {

enum class PlantedFault : std::uint8_t {
  none,
  pages_freed_in_launch,  // a session gives pages back that a launch still uses
  page_not_copied,        // a shared page's content does not come along
  old_epoch_accepted,     // the answer to a step that was withdrawn is taken for the newest one's
  leader_death_untold,    // whoever waits for a prefix does not learn that nobody computes it any more
  pages_kept,             // a turn that ends keeps what it was granted and did not need
  step_lost,              // a step is not sent again when its batcher died
  credit_ignored,         // a session goes on although its reader takes nothing
  wrong_guess_kept,       // rows of guesses that were wrong count
};
constexpr int kPlantedFaults = 9;

#ifdef TROUPE_PLANTED_FAULTS
inline PlantedFault planted_fault = PlantedFault::none;
inline bool planted(PlantedFault fault) {
  return planted_fault == fault;
}
#else
constexpr bool planted(PlantedFault) {
  return false;
}
#endif

}  // namespace troupe
