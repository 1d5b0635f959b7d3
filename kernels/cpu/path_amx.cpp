#include "kernels/cpu/amx_kernel.h"
#include "kernels/cpu/vec_avx512.h"

namespace troupe::cpu {

const Path& amx_path() {
  static const Path kPath = make_amx_path<Avx512<true>, HardwareTiles>("amx");
  return kPath;
}

}  // namespace troupe::cpu
