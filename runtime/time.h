// The two measures of time that the house passes around. Clocks are read at the edges only.
#pragma once

#include <chrono>

namespace troupe {

using TimePoint = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

}  // namespace troupe
