#include "kernels/cpu/path_table.h"
#include "kernels/cpu/vec_avx512.h"

namespace troupe::cpu {

const Path& avx512_path() {
  static constexpr Path kPath = make_path<Avx512<false>>("avx512");
  return kPath;
}

}  // namespace troupe::cpu
