#include "kernels/cpu/path_table.h"
#include "kernels/cpu/vec_avx2.h"

namespace troupe::cpu {

const Path& avx_vnni_path() {
  static constexpr Path kPath = make_path<Avx2<true>>("avx-vnni");
  return kPath;
}

}  // namespace troupe::cpu
