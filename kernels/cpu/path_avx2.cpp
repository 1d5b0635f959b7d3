#include "kernels/cpu/path_table.h"
#include "kernels/cpu/vec_avx2.h"

namespace troupe::cpu {

const Path& avx2_path() {
  static constexpr Path kPath = make_path<Avx2<false>>("avx2");
  return kPath;
}

}  // namespace troupe::cpu
