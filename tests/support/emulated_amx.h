// The amx path over emulated tile registers: runs wherever AVX-512 VNNI does. For tests.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace troupe::test {

enum class WideFrom { as_on_hardware, one_row };  // the launches that take the tiles, of the formats that ask for them
std::unique_ptr<Backend> make_emulated_amx_backend(WideFrom from, int threads);

}  // namespace troupe::test
