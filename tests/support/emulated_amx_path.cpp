#include "tests/support/emulated_amx_path.h"

#include "kernels/cpu/amx_kernel.h"
#include "kernels/cpu/vec_avx512.h"
#include "tests/support/emulated_tiles.h"

namespace troupe::test {

const cpu::Path& emulated_amx_path() {
  static const cpu::Path kPath = cpu::make_amx_path<Avx512<true>, EmulatedTiles>("emulated amx");
  return kPath;
}

}  // namespace troupe::test
