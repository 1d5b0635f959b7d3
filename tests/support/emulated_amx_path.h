// The path alone, as it is compiled with other flags than the rest of the tests.
#pragma once

#include "kernels/cpu/path.h"

namespace troupe::test {

const cpu::Path& emulated_amx_path();

}  // namespace troupe::test
